import { identity, step } from "../schema/Step.js"

/** Each time that an operator confirmed the clock; Unix milliseconds. */
export const clockConfirmations = step((sql) => [
  sql`create table clock_confirmations (confirmation_no ${identity(sql)}, confirmed_at bigint not null)`
])
