import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { NetworkProfile } from "../../application/ports/NetworkProfile.js"
import type { Problem, Secret } from "../config/FileFields.js"
import { Network as Written } from "../config/NetworkFile.js"
import * as NetworkProfiles from "../config/NetworkProfiles.js"
import * as SchemaProblems from "../config/SchemaProblems.js"

/** A field of the file in a program's form: wei also as integers, URLs plain or redacted. */
type InProgram<A> = [Extract<A, { readonly env: string }>] extends [never]
  ? string | number extends A
    ? A | bigint
    : Parts<A>
  : string | Redacted.Redacted<string>

type Parts<A> = A extends object ? { readonly [K in keyof A]: InProgram<A[K]> } : A

type Fields = Omit<typeof Written.Encoded, "chainId">

/** One chain. Every field but its id has a default; see docs/configuration.md and docs/config.schema.json. */
export interface Network extends Parts<Fields> {
  readonly chainId: number | bigint
}

/** The options as JSON, for the configuration file's schema. */
const plain = (value: unknown): unknown => {
  if (typeof value === "bigint") return value.toString()
  if (Redacted.isRedacted(value)) return Redacted.value(value)
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, plain(field)]))
}

const toWritten = (network: Network): unknown => {
  const fields = plain(network)
  return typeof fields === "object" ? { ...fields, chainId: Number(network.chainId) } : fields
}

const decode = SchemaProblems.decoder(Schema.Struct({ networks: Schema.Array(Written) }))

export interface Read {
  readonly profiles: ReadonlyArray<NetworkProfile>
  readonly lowBalances: ReadonlyMap<bigint, bigint>
}

/** Builds network profiles from the options, under the configuration file's rules. */
export const read = (
  networks: ReadonlyArray<Network>,
  options: Pick<NetworkProfiles.Input, "sponsors" | "treasury">
): Result.Result<Read, ReadonlyArray<Problem>> =>
  Result.flatMap(decode({ networks: networks.map(toWritten) }), ({ networks: decoded }) => {
    const problems: Array<Problem> = []
    const say = (path: string, message: string) => problems.push({ path, message })
    const secret = (path: string, text: Secret): Redacted.Redacted<string> => {
      if (typeof text !== "string") say(path, "expected a URL")
      return Redacted.make(typeof text === "string" ? text : "")
    }
    const made = NetworkProfiles.make({
      networks: decoded.map((network, index) =>
        NetworkProfiles.locate(network, `networks[${index}]`, secret, say)
      ),
      accounts: [],
      development: false,
      ...options
    })
    problems.push(...made.problems)
    return problems.length > 0
      ? Result.fail(problems)
      : Result.succeed({ profiles: made.networks, lowBalances: NetworkProfiles.lowBalances(decoded) })
  })
