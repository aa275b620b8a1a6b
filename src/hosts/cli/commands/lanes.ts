import * as Arr from "effect/Array"
import * as Context from "effect/Context"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type SystemRole, systemRoles } from "../../../application/keys/KeyRingRegistry.js"
import { TransactionJournal } from "../../../application/ports/journal/TransactionJournal.js"
import {
  type LaneAccess,
  laneKey,
  type TransactionRecord
} from "../../../application/ports/journal/Transactions.js"
import * as Address from "../../../domain/primitives/Address.js"
import type { Config } from "../../config/Config.js"
import * as KnownSigners from "../support/KnownSigners.js"
import { chainOf, flag, help, json, optional, report } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as OperatorPort from "../support/OperatorPort.js"
import * as Table from "../support/Table.js"

const keyOf = ({ accountId, key }: LaneAccess): string => {
  if (typeof key === "string") return key
  const id = key.versionId === undefined ? `assetId ${key.assetId}` : `versionId ${key.versionId}`
  return `${accountId}: ${key.clientId} ${id}`
}

const summary = ([first, ...rest]: Arr.NonEmptyReadonlyArray<TransactionRecord>) => {
  const records = [first, ...rest]
  const waiting = records.filter(({ state }) => state === "signed")
  const [lowest] = waiting
  return {
    chainId: Number(first.chainId),
    signer: first.signer,
    keys: [...new Set(records.map(({ access }) => keyOf(access)))],
    waiting: waiting.length,
    mined: records.length - waiting.length,
    lowestWaitingNonce: lowest === undefined ? null : Number(lowest.nonce),
    lastSignedAt: Table.time(Math.max(...records.map(({ signedAt }) => signedAt)))
  }
}

const list = Command.make("list", { json }).pipe(
  help(
    "Lists the lanes that have pending transactions: signed and not mined, or mined and not settled.",
    "",
    "--json"
  ),
  report(function* () {
    const { ports } = yield* OperatorContext.open
    const lanes = Object.values(
      Arr.groupBy(yield* Context.get(ports, TransactionJournal).open, (record): string => laneKey(record))
    ).map(summary)
    return Table.list(lanes, "no lane has a transaction under way", {
      CHAIN: (lane) => lane.chainId,
      SIGNER: (lane) => lane.signer,
      KEY: (lane) => lane.keys.join("; "),
      WAITING: (lane) => lane.waiting,
      MINED: (lane) => lane.mined,
      "LOWEST NONCE": (lane) => lane.lowestWaitingNonce ?? "-",
      "LAST SIGNED": (lane) => lane.lastSignedAt
    })
  })
)

const operands = {
  chain: Argument.String("CHAIN").pipe(Argument.withDescription("a chain id")),
  signer: Argument.String("SIGNER").pipe(
    Argument.withDescription(`the EOA's address, or one of ${systemRoles.join(", ")}`)
  )
}

const isRole = (text: string): text is SystemRole => systemRoles.some((role) => role === text)

const addressOf = (role: SystemRole, { keys }: Config) =>
  Effect.gen(function* () {
    const source = keys.systemKeys[role]
    if (source === undefined) return yield* Effect.fail(`the configuration has no systemKeys.${role}`)
    if (source.address !== undefined) return source.address
    const [asked] = yield* KnownSigners.ask([{ name: role, accounts: [], source, origin: "file" }], keys)
    return asked?.address ?? (yield* Effect.fail(`the key ${role} is unavailable: ${asked?.problem}`))
  })

const find = (chain: string, signer: string) =>
  Effect.gen(function* () {
    const { config, ports } = yield* OperatorContext.open
    const lane = {
      chainId: yield* chainOf(chain, "CHAIN: "),
      signer: isRole(signer)
        ? yield* addressOf(signer, config)
        : yield* Effect.fromResult(
            Result.mapError(Address.from(signer), ({ message }) => `SIGNER: ${message}`)
          )
    }
    return { config, lane, open: yield* Context.get(ports, TransactionJournal).openOf(lane) }
  })

const transaction = (record: TransactionRecord) => {
  const newest = record.versions.at(-1)
  return {
    nonce: Number(record.nonce),
    state: record.state,
    key: keyOf(record.access),
    txHash: record.mined?.txHash ?? newest?.txHash ?? null,
    versions: record.versions.length,
    maxFeePerGas: newest?.maxFeePerGas.toString() ?? null,
    maxPriorityFeePerGas: newest?.maxPriorityFeePerGas.toString() ?? null,
    signedAt: Table.time(record.signedAt),
    requests: [
      ...new Set([
        ...record.ops.map(({ requestId }) => requestId),
        ...(record.direct === null ? [] : [record.direct])
      ])
    ]
  }
}

const show = Command.make("show", { ...operands, json }).pipe(
  help(
    "Lists the pending transactions of a lane, in the order of their nonces.",
    "137 serviceEoa",
    "137 0x7842e753F6A682A7907939a0855E0c72eD0c6cB9 --json"
  ),
  report(function* ({ chain, signer }) {
    const { lane, open } = yield* find(chain, signer)
    const { json, text } = Table.list(
      open.map(transaction),
      `no transaction of ${lane.signer} is under way on chain ${lane.chainId}`,
      {
        NONCE: (row) => row.nonce,
        STATE: (row) => row.state,
        TRANSACTION: (row) => row.txHash ?? "-",
        VERSIONS: (row) => row.versions,
        "MAX FEE": (row) => row.maxFeePerGas ?? "-",
        SIGNED: (row) => row.signedAt,
        REQUESTS: (row) => (row.requests.length === 0 ? "fills the nonce" : row.requests.join(", "))
      }
    )
    return { text, json: { chainId: Number(lane.chainId), signer: lane.signer, transactions: json } }
  })
)

const Unstuck = Schema.Struct({
  replaced: Schema.Array(
    Schema.Struct({
      nonce: Schema.Int,
      oldTxHash: Schema.NullOr(Schema.String),
      newTxHash: Schema.NullOr(Schema.String),
      maxFeePerGas: Schema.String,
      maxPriorityFeePerGas: Schema.String
    })
  ),
  left: Schema.Array(Schema.Struct({ nonce: Schema.Int, reason: Schema.String }))
})

const unstick = Command.make("unstick", {
  ...operands,
  dryRun: flag("dry-run", "only show what would be replaced, and at which price"),
  ...OperatorContext.logged,
  operator: optional("operator", "NAME", "the one of admin.operators to sign in as; default: the first"),
  json
}).pipe(
  help(
    "Replaces the waiting transactions of a lane at higher prices, each with its own nonce, up to the operator's caps. The running service does it, since it owns the lane.",
    "137 serviceEoa --dry-run",
    "137 serviceEoa"
  ),
  report(function* ({ chain, dryRun, operator, reason, signer }) {
    const { config, lane, open } = yield* find(chain, signer)
    if (!open.some(({ state }) => state === "signed"))
      return yield* Effect.fail(
        `no transaction of ${lane.signer} is pending on chain ${chain}; run "castellan lanes list"`
      )
    const query = new URLSearchParams({ chain, signer: lane.signer, dryRun: String(dryRun) })
    // A service of an earlier version refuses the parameter.
    if (reason !== undefined) query.set("reason", reason)
    const body = yield* OperatorPort.post(config, `/lanes/unstick?${query}`, operator)
    const answer = yield* Effect.fromResult(
      Result.mapError(
        Schema.decodeUnknownResult(Unstuck)(body),
        () => "the service gave an answer that cannot be read"
      )
    )
    if (answer.replaced.length + answer.left.length === 0)
      return yield* Effect.fail(
        "nothing waits there any more; if it does here, the service that answered has another database"
      )
    return {
      json: answer,
      text: [
        ...answer.replaced.map(
          ({ maxFeePerGas, newTxHash, nonce, oldTxHash }) =>
            `nonce ${nonce}: ${oldTxHash} ${newTxHash === null ? "would be replaced" : `is replaced by ${newTxHash}`} at ${maxFeePerGas} wei a gas unit`
        ),
        ...answer.left.map(({ nonce, reason }) => `nonce ${nonce} is not replaced: ${reason}`)
      ].join("\n")
    }
  })
)

export const commands = [list, show, unstick]

export const notes = [
  "A lane is the ordered stream of transactions of one EOA on one chain: of an account's signer, or of the service's own EOA. The keys deployer and sponsor send no transactions; their lanes are empty.",
  "list and show read the journal; the service need not run.",
  "unstick asks the running service through its operator's port (admin in the configuration). Without a running service it does nothing, since only the process that owns a lane signs for it. A service that starts takes over its lanes by itself."
]
