import * as AST from "effect/SchemaAST"
import type { Filter, Issue } from "effect/SchemaIssue"

/** Where in a value an issue is, and which schemas the value there may have been held to, the outermost first. */
export interface Place {
  readonly path: ReadonlyArray<PropertyKey>
  readonly schemas: ReadonlyArray<AST.AST>
}

/** The place of a whole value. */
export const root = (schema: { readonly ast: AST.AST }): Place => ({ path: [], schemas: [schema.ast] })

/** The issues that an issue consists of, each with its place. */
export const parts = (
  issue: Issue,
  { path, schemas }: Place
): ReadonlyArray<readonly [issue: Issue, place: Place]> => {
  const among = (part: Issue, candidates: ReadonlyArray<AST.AST>) =>
    [part, { path, schemas: candidates.filter((each) => isAbout(part, each)) }] as const
  switch (issue._tag) {
    case "Pointer":
      return [[issue.issue, { path: [...path, ...issue.path], schemas: issue.path.reduce(members, schemas) }]]
    case "Composite":
      return issue.issues.map((part) => [part, { path, schemas: [issue.ast] }])
    case "AnyOf":
      return issue.issues.map((part) => among(part, issue.ast.types))
    case "Encoding":
      return [among(issue.issue, wire(issue.ast))]
    case "Filter":
      return [[issue.issue, { path, schemas }]]
    default:
      return []
  }
}

const isAbout = (issue: Issue, schema: AST.AST): boolean =>
  issue._tag === "Filter" ? holds(schema.checks ?? [], issue.filter) : "ast" in issue && issue.ast === schema

const holds = (checks: ReadonlyArray<AST.Check<never>>, filter: Filter["filter"]): boolean =>
  checks.some((check) => (check._tag === "FilterGroup" ? holds(check.checks, filter) : check === filter))

/** What the outermost schema of a place is annotated with. One with checks keeps it on the last of them. */
export const annotation = ({ schemas: [outermost] }: Place, key: string): unknown =>
  outermost === undefined ? undefined : AST.resolve(outermost)?.[key]

/** The schemas of a member. */
export const members = (schemas: ReadonlyArray<AST.AST>, name: PropertyKey): ReadonlyArray<AST.AST> =>
  schemas.flatMap((schema) => {
    if (AST.isObjects(schema)) {
      const own = schema.propertySignatures.filter((property) => property.name === name)
      return (own.length > 0 ? own : schema.indexSignatures).map(({ type }) => type)
    }
    if (AST.isArrays(schema)) return schema.elements[Number(name)] ?? schema.rest
    return members(alternatives(schema), name)
  })

/** The property whose literal tells the objects of a union apart. Null: none does. */
export const discriminator = ({
  types: [first, ...others]
}: AST.Union): { readonly name: string; readonly types: ReadonlyArray<AST.AST> } | null => {
  if (first === undefined || !AST.isObjects(first)) return null
  for (const { name, type } of first.propertySignatures) {
    const types = [type, ...members(others, name)]
    if (types.length > others.length && types.every(AST.isLiteral)) return { name: String(name), types }
  }
  return null
}

/** The names that members of an object may have. */
export const names = (schemas: ReadonlyArray<AST.AST>): ReadonlyArray<string> =>
  schemas.flatMap((schema) =>
    AST.isObjects(schema)
      ? schema.propertySignatures.map(({ name }) => String(name))
      : names(alternatives(schema))
  )

const alternatives = (schema: AST.AST): ReadonlyArray<AST.AST> => {
  if (AST.isUnion(schema)) return schema.types
  return AST.isSuspend(schema) ? [schema.thunk()] : wire(schema)
}

/** What a codec's value is made from, step by step. */
const wire = ({ encoding }: AST.AST): ReadonlyArray<AST.AST> => (encoding ?? []).map(({ to }) => to)
