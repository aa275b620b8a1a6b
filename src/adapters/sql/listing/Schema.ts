import { clustered, step } from "../schema/Step.js"

/**
 * What a caller says of its request, a JSON object; null: nothing. `request_terms` has a row for each member of it and for
 * each wallet of the request: by them an account's requests are found, in the order in which they are listed. Requests of
 * before have their wallets.
 */
export const requestMetadata = step((sql) => [
  sql`alter table requests add column metadata text`,
  sql`
    create table request_terms (
      account_id text not null,
      term text not null,
      accepted_at bigint not null,
      request_no bigint not null,
      primary key (account_id, term, accepted_at, request_no)
    ) ${clustered(sql)}`,
  sql`
    insert into request_terms (account_id, term, accepted_at, request_no)
    select distinct requests.account_id, 'wallet ' || ops.wallet, requests.accepted_at, requests.request_no
    from requests join ops on ops.request_id = requests.request_id
    where requests.state <> 'forgotten'`
])
