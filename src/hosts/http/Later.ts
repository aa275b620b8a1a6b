import type { Scope } from "../../application/ports/Accounts.js"

/**
 * Paths that belong to the interface and are not served yet, with the scope that each will need. They take POST,
 * ask for a key, and answer 400 `<path without its slash> is not available yet`.
 */
export const later: Readonly<Record<string, Scope>> = {
  "/passkeyHash": "read",
  "/executePasskey": "write"
}
