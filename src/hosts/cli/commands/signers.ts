import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Address from "../../../domain/primitives/Address.js"
import { create } from "../accounts/SignerCreation.js"
import * as Command from "../support/Command.js"
import * as KnownSigners from "../support/KnownSigners.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Switch from "../support/Switch.js"
import * as Table from "../support/Table.js"

const stateOf = ({ address, problem, source: { address: pinned } }: KnownSigners.Asked): string => {
  if (problem !== null) return `not reachable: ${problem}`
  return pinned === undefined || pinned === address ? "reachable" : `reachable, but configured is ${pinned}`
}

const placeOf = ({ source: { key, provider } }: KnownSigners.Asked): string =>
  `${JSON.stringify(key)} of provider ${JSON.stringify(provider)}`

const accountsOf = ({ accounts }: KnownSigners.Asked): string =>
  accounts.length === 0 ? "-" : accounts.join(",")

const addressesOf = (asked: ReadonlyArray<KnownSigners.Asked>): ReadonlyArray<string> =>
  asked.map(({ address, name }) => `${address ?? "unknown"} (${name})`)

const shown = (signer: KnownSigners.Asked) => ({
  signer: signer.name,
  accounts: signer.accounts,
  address: signer.address,
  pinned: signer.source.address ?? null,
  type: signer.type,
  provider: signer.source.provider,
  key: signer.source.key,
  origin: signer.origin,
  reachable: signer.problem === null,
  problem: signer.problem
})

const list = Command.make({
  name: "list",
  about:
    "Asks every provider for the keys of the configuration file and the database: address, type, and whether it can be reached.",
  examples: ["", "--json"],
  run: function* () {
    const context = yield* OperatorContext.open
    const signers = yield* KnownSigners.ask(KnownSigners.all(context), context.config.keys)
    return {
      text: Table.listed(signers, "there are no signers", {
        SIGNER: (signer) => signer.name,
        ADDRESS: (signer) => signer.address ?? "unknown",
        TYPE: (signer) => signer.type ?? "",
        KEY: (signer) => placeOf(signer),
        ACCOUNTS: (signer) => accountsOf(signer),
        FROM: (signer) => signer.origin,
        STATE: (signer) => stateOf(signer)
      }),
      json: signers.map(shown)
    }
  }
})

const subjectOf = (text: string) =>
  Effect.fromResult(Result.mapError(Address.from(text), ({ message }) => `${text}: ${message}`))

const show = Command.make({
  name: "show",
  about:
    "Shows a key by its address: every signer and system key that it is, in the configuration file and in the database, and whether it is paused. Also a pinned address whose provider does not answer.",
  examples: ["0x7842e753F6A682A7907939a0855E0c72eD0c6cB9"],
  operands: { text: Command.operand("ADDRESS", "the key's address") },
  run: function* ({ text }) {
    const address = yield* subjectOf(text)
    const context = yield* OperatorContext.open
    const asked = yield* KnownSigners.ask(KnownSigners.all(context), context.config.keys)
    const signers = asked.filter((each) => each.address === address || each.source.address === address)
    if (signers.length === 0)
      return yield* Effect.fail(
        `no key of the service has the address ${address}; ${OperatorContext.thereAre(addressesOf(asked), "it has no keys")}`
      )
    const since = OperatorContext.pausedSince(context.content, "signer", address)
    const paused = since === null ? null : Table.time(since)
    return {
      text: [
        ...signers.map((signer) =>
          Table.aligned([
            ["signer", signer.name],
            ["address", signer.address ?? "unknown"],
            ...(signer.source.address === undefined ? [] : [["configured as", signer.source.address]]),
            ["type", signer.type ?? "unknown"],
            ["key", placeOf(signer)],
            ["accounts", accountsOf(signer)],
            ["from", signer.origin],
            ["state", stateOf(signer)]
          ])
        ),
        paused === null ? "it may sign" : `it is paused since ${paused}`
      ].join("\n\n"),
      json: { address, paused, signers: signers.map(shown) }
    }
  }
})

/** A key that nobody can be asked for must not keep anybody from stopping it: the command then goes on, and says so. */
const exists = (subject: string, context: OperatorContext.OperatorContext) =>
  Effect.gen(function* () {
    const known = KnownSigners.all(context)
    if (known.some(({ source }) => source.address === subject)) return
    const asked = yield* KnownSigners.askEach(known, context.config.keys, (each) =>
      each.address === subject ? Effect.fail("found") : Effect.succeed(each)
    ).pipe(Effect.catch(() => Effect.succeed(null)))
    if (asked === null) return
    const silent = asked.filter(({ address }) => address === null)
    if (silent.length > 0) {
      const { tell } = yield* Command.Operator
      return yield* tell(
        `nobody says whether ${subject} is a key of the service: ${silent.map(({ name }) => name).join(", ")} can not be reached`
      )
    }
    return yield* Effect.fail(
      `no key of the service has the address ${subject}; ${OperatorContext.thereAre(addressesOf(asked), "it has no keys")}`
    )
  })

export const commands = [
  list,
  show,
  create,
  ...Switch.commands({
    kind: "signer",
    operand: Command.operand("ADDRESS", "the key's address"),
    what: "by",
    anyWhat: "that a key would sign",
    example: "0x7842e753F6A682A7907939a0855E0c72eD0c6cB9",
    subjectOf,
    exists
  })
] as const

export const notes = [
  "PINs and other secrets are read as the configuration says, never from the command line.",
  "A key is paused by its address: one of an account, or one of the operator's own (systemKeys).",
  "Pauses take effect within a second, on all replicas, without a restart. /sign is refused as well; reading is still possible."
]
