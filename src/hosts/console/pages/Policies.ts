import * as Effect from "effect/Effect"
import * as Usage from "../../../application/policies/Usage.js"
import type { PolicyVersion } from "../../../application/ports/Policies.js"
import { everyWallet } from "../../../domain/policy/Subject.js"
import type { Data, Missing, View } from "../Data.js"
import { type Html, html, type Part } from "../Html.js"
import * as Page from "../Page.js"
import * as Tokens from "../Tokens.js"

/** Spending rules of all accounts, and what their limits have counted. */

/** Accounts, policies, their characters, and limits that are shown; the command line has all. */
const most = { accounts: 50, policies: 200, limits: 100, characters: 4_096 }

const mode = ({ content }: PolicyVersion): Part => {
  if (content === null || "addresses" in content) return Page.status("ok", "List")
  return content.mode === "enforce" ? Page.status("ok", "Enforced") : Page.status("wait", "Observed")
}

/** An amount in the limit's asset. */
const worth = (data: Data, { asset, chain }: Usage.Use["limit"], value: bigint): Effect.Effect<string> => {
  if (asset === "ops" || asset === "calls") return Effect.succeed(`${Page.count(value)} ${asset}`)
  const chainId = BigInt(chain)
  return asset === "native" || asset === "fees"
    ? Effect.succeed(Page.coins(value, chainId))
    : Effect.map(Tokens.of(data, chainId, asset), (token) => Tokens.amount(value, token))
}

const used = (data: Data, { figures, limit }: Usage.Use, isEach: boolean): Effect.Effect<Part> => {
  if (figures === null)
    return Effect.succeed(isEach ? "per wallet" : limit.per === "op" ? "per op" : "per request")
  const sum = figures.held + figures.booked
  const share = limit.max === 0n ? 1 : Number((sum * 1_000n) / limit.max) / 1_000
  return Effect.map(worth(data, limit, sum), (text) => html`${text} ${Page.meter(share, limit.name)}`)
}

const limitRows = (data: Data, version: PolicyVersion) =>
  Effect.gen(function* () {
    const { accountId, content, layer, subject } = version
    const beyond = content !== null && "mode" in content && content.mode === "observe" ? "logged" : "refused"
    const uses = yield* Usage.of(data.budgets, version, subject)
    return yield* Effect.forEach(uses, (use) =>
      Effect.gen(function* () {
        const { limit } = use
        return [
          limit.name,
          html`${accountId}, ${Page.code(subject)} <small>${layer}</small>`,
          yield* used(data, use, subject === everyWallet),
          html`${yield* worth(data, limit, limit.max)} <small>${limit.per}</small>`,
          beyond
        ] satisfies ReadonlyArray<Part>
      })
    )
  })

export const boxes = (data: Data, view: View): Effect.Effect<Html, Missing> =>
  Effect.gen(function* () {
    const { accounts } = yield* data.policies.changes(0)
    // An account whose rules cannot be read does not hide the others'.
    const all = yield* Effect.forEach(accounts.slice(0, most.accounts), (accountId) =>
      Effect.match(data.policies.current(accountId), {
        onSuccess: (versions) => ({ accountId, versions, problem: null }),
        onFailure: ({ message }) => ({ accountId, versions: [], problem: message })
      })
    )
    const versions = all.flatMap((each) => each.versions).slice(0, most.policies)
    const limited = versions.filter(({ content }) => content !== null && "rules" in content)
    const rows = yield* Effect.forEach(limited.slice(0, most.limits), (version) => limitRows(data, version))
    return html`${all.flatMap(({ accountId, problem }) =>
      problem === null ? [] : [Page.problem(`Rules of ${accountId} refuse all its writes: ${problem}`)]
    )}${Page.box(
      "Spending limits",
      Page.table(
        "Spending limits",
        ["Limit", "Applies to", "Used", { name: "Most", isRight: true }, "Beyond it"],
        rows.flat().slice(0, most.limits),
        "No policy has a limit."
      ),
      html`<small>days are UTC</small>`
    )}
${Page.box(
  "Spending rules",
  Page.table(
    "Spending rules",
    ["Subject", "Account", "Layer", { name: "Version", isRight: true }, "Content", "State", "Set", "By"],
    versions.map((version) => [
      Page.code(version.subject),
      version.accountId,
      version.layer,
      version.version.toString(),
      Page.folded(
        Usage.summaryOf(version.content),
        version.content,
        "castellan policies show has it",
        most.characters
      ),
      mode(version),
      Page.ago(version.at * 1_000, view.now),
      version.by
    ]),
    "No account has spending rules: castellan policies set makes them."
  )
)}`
  }).pipe(Effect.mapError(({ message }) => ({ message: `spending rules cannot be read: ${message}` })))
