import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Inspection from "../application/operate/Inspection.js"
import type { ChainRpc } from "../application/ports/chain/ChainRpc.js"
import type { Signers, SystemSigners } from "../application/ports/Signers.js"
import type { Config } from "./config/Config.js"
import * as Wiring from "./Wiring.js"

/** The networks of a configuration to inspect, with the overrides of the file's accounts. */
const networksOf = ({
  accountNetworks,
  keys,
  lowBalances,
  networks
}: Config): ReadonlyArray<Inspection.Inspected> => {
  // A shared key is a single EOA.
  const submitters = keys.signers.flatMap(({ accountIds: [account], assetId, clientId, versionId }) =>
    account === undefined ? [] : [{ account, ref: { clientId, versionId, assetId } }]
  )
  const inspected = (account: string | null, profile: Inspection.Inspected["profile"]) => ({
    account,
    profile,
    lowBalance: lowBalances.get(profile.chainId) ?? 0n,
    submitters: submitters.filter((submitter) => account === null || submitter.account === account)
  })
  return [
    ...networks.map((profile) => inspected(null, profile)),
    ...accountNetworks.map(({ accountId, profile }) => inspected(accountId, profile))
  ]
}

const placeOf = ({ account, chainId }: Inspection.Finding): string =>
  `chain ${chainId}${account === null ? "" : `, account ${account}`}`

/** A line of `castellan config check --connect`. */
export interface ReportLine {
  readonly severity: Inspection.Finding["severity"]
  readonly place: string
  readonly message: string
}

const toReportLine = (finding: Inspection.Finding): ReportLine => ({
  severity: finding.severity,
  place: placeOf(finding),
  message: finding.message
})

const broken =
  (place: string) =>
  ({ message }: { readonly message: string }): ReadonlyArray<ReportLine> => [
    { severity: "broken", place, message }
  ]

/** Time-out per server. */
const checkPatience = Duration.seconds(30)

/** Time-out per server when a service cannot start and other problems are collected. */
const refusalPatience = Duration.seconds(5)

const connection = (
  { name, open }: Wiring.Connection,
  patience: Duration.Duration
): Effect.Effect<ReadonlyArray<ReportLine>> =>
  Effect.scoped(open).pipe(
    Effect.as<ReadonlyArray<ReportLine>>([]),
    Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail({ message: "no answer in time" }) }),
    Effect.catch((error) => Effect.succeed(broken(name)(error)))
  )

/** Inspects chains with the usable keys, whatever faults the other keys have. */
const keysAndChains = (
  config: Config,
  patience: Duration.Duration
): Effect.Effect<ReadonlyArray<ReportLine>> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { ports, problems } = yield* Wiring.keys(config, patience)
      const findings = yield* Effect.provide(Inspection.run(networksOf(config), patience), ports)
      return [...problems.flatMap((message) => broken("keys")({ message })), ...findings.map(toReportLine)]
    })
  ).pipe(Effect.provide(Wiring.nodes))

/** Connects to every server that the configuration names and reports all problems together. Writes nothing. */
const within = (config: Config, patience: Duration.Duration): Effect.Effect<ReadonlyArray<ReportLine>> =>
  Effect.map(
    Effect.all(
      [
        ...Wiring.connections(config).map((server) => connection(server, patience)),
        keysAndChains(config, patience)
      ],
      { concurrency: "unbounded" }
    ),
    (found) => found.flat()
  )

export const run = (config: Config): Effect.Effect<ReadonlyArray<ReportLine>> => within(config, checkPatience)

/** Explains why a service cannot start, and adds the other problems. */
export const explain = (config: Config, refusal: string): Effect.Effect<string> =>
  Effect.map(within(config, refusalPatience), (found) => {
    const others = found
      .filter(({ message, severity }) => severity === "broken" && !refusal.includes(message))
      .map(({ message, place }) => `  ${place}: ${message}`)
    return others.length === 0 ? refusal : [refusal, "beside that:", ...others].join("\n")
  })

/** Runs in the background at the start of a service: an unreachable node or Redis delays nothing. */
export const start = (
  config: Config
): Effect.Effect<void, never, ChainRpc | Signers | SystemSigners | Scope.Scope> => {
  const chains = Effect.flatMap(Inspection.run(networksOf(config)), (findings) =>
    Effect.forEach(
      findings,
      (finding) =>
        (finding.severity === "broken" ? Effect.logError : Effect.logWarning)(finding.message).pipe(
          Effect.annotateLogs({
            chainId: finding.chainId.toString(),
            ...(finding.account !== null && { accountId: finding.account })
          })
        ),
      { discard: true }
    )
  )
  // The database is already open here.
  const servers = Effect.forEach(
    Wiring.connections(config).filter(({ name }) => name !== "database"),
    (server) =>
      Effect.flatMap(connection(server, checkPatience), (found) =>
        Effect.forEach(found, ({ message, place }) => Effect.logError(`${place}: ${message}`))
      )
  )
  return Effect.asVoid(Effect.forkScoped(Effect.all([chains, servers], { concurrency: "unbounded" })))
}
