import type { Principal } from "./ports/Accounts.js"

/** On whose behalf a use case runs, and under which id its work is journalled. */
export interface Caller {
  readonly principal: Principal
  /** Unique; chosen by the host, never by the caller. */
  readonly requestId: string
}
