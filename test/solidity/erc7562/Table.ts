import { checkedRules } from "./Rules.js"
import { type Entity, entities, type Finding } from "./Scope.js"

export interface Row {
  readonly words: string
  /** Whether the op creates its account, which then can have no stake. */
  readonly creates: boolean
  readonly findings: ReadonlyArray<Finding>
}

const say = ({ entity, rule, what }: Finding, withEntity: boolean): string =>
  withEntity ? `${entity}: ${what} (${rule})` : `${what} (${rule})`

const cell = (texts: ReadonlyArray<string>): string => (texts.length === 0 ? "nothing" : texts.join(", "))

const neededBy = ({ findings }: Row): ReadonlyArray<Entity> =>
  entities.filter((entity) => findings.some((finding) => finding.allowedByStakeOf === entity))

/** The stakes that a public mempool requires for the op. */
export const accepted = (row: Row): string => {
  if (row.findings.some((finding) => finding.allowedByStakeOf === null)) return "never"
  const needed = neededBy(row)
  if (row.creates && needed.includes("account")) return "never: the account does not exist yet"
  if (needed.length === 0) return "yes"
  const names = needed.map((entity) => `the ${entity}`).join(" and ")
  return `when ${names} ${needed.length > 1 ? "are" : "is"} staked`
}

/** Rules that no op of the rows breaks, whatever is staked. */
const keptByAll = (rows: ReadonlyArray<Row>): ReadonlyArray<string> =>
  checkedRules.filter((rule) => rows.every(({ findings }) => findings.every((each) => each.rule !== rule)))

const line = (row: Row): string => {
  const forbidden = row.findings.filter((finding) => finding.allowedByStakeOf === null)
  const stakes = entities.map((entity) =>
    cell(
      row.findings.filter((each) => each.allowedByStakeOf === entity).map((finding) => say(finding, false))
    )
  )
  const first = cell(forbidden.map((finding) => say(finding, true)))
  return `| ${[row.words, first, ...stakes, accepted(row)].join(" | ")} |`
}

/** The table of docs/contracts.md. */
export const table = (rows: ReadonlyArray<Row>): string =>
  [
    "| operation | forbidden, staked or not | needs a staked factory | needs a staked account | needs a staked paymaster | a public mempool takes it |",
    "|---|---|---|---|---|---|",
    ...rows.map(line),
    "",
    `Kept by all of them: ${keptByAll(rows).join(", ")}.`
  ].join("\n")
