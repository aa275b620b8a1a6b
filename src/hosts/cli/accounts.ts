import * as Networks from "./accounts/Networks.js"
import * as Profiles from "./accounts/Profiles.js"
import * as Signers from "./accounts/Signers.js"
import * as Command from "./Command.js"

export const group: Command.Group = {
  name: "accounts",
  about: "make, show, change and pause accounts",
  commands: [...Profiles.commands, ...Networks.commands, ...Signers.commands],
  notes: [
    "All changes take effect within a second, on all replicas, without a restart.",
    "Accounts are of the database or of the configuration file. What the file says only the file changes; keys can be",
    "issued for its accounts here, and they can be paused and resumed.",
    "An account of the database has no factory but its own: the one of the chain belongs to accounts of the file."
  ]
}

export const run: Command.Run = Command.run(group)
