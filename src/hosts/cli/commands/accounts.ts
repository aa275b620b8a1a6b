import * as AccountNetworks from "./AccountNetworks.js"
import * as AccountProfiles from "./AccountProfiles.js"
import * as AccountSigners from "./AccountSigners.js"

export const commands = [
  ...AccountProfiles.commands,
  ...AccountNetworks.commands,
  ...AccountSigners.commands
] as const

export const notes = [
  "All changes take effect within a second, on all replicas, without a restart.",
  "Accounts are of the database or of the configuration file. What the file says only the file changes; keys can be issued for its accounts here, and they can be paused and resumed.",
  "An account of the database has no factory but its own: the one of the chain belongs to accounts of the file."
]
