import * as AccountNetworks from "../accounts/AccountNetworks.js"
import * as AccountSigners from "../accounts/AccountSigners.js"
import * as AccountProfiles from "./AccountProfiles.js"

export const commands = [
  ...AccountProfiles.commands,
  ...AccountNetworks.commands,
  ...AccountSigners.commands
] as const

export const notes = [
  "All changes take effect within a second, on all replicas, without a restart.",
  "An account is defined in the database or in the configuration file. An account of the file can only be changed in the file, but it can be paused and resumed here, and keys can be issued for it.",
  "An account of the database can only have a factory of its own: the factory of the chain is for accounts of the file."
]
