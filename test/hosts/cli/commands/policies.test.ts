import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Snippets from "../../../scenarios/docs/Snippets.js"
import { make, until } from "../../../support/accounts/Castellan.js"
import * as CommandLine from "../../../support/process/CommandLine.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-policies-"))
const castellan = make(folder, {
  accounts: [
    { id: "acme", name: "Acme", tier: "pro", keys: [] },
    { id: "globex", name: "Globex", tier: "pro", keys: [] }
  ]
})

const token = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
const policy = {
  mode: "enforce",
  expiresAt: 0,
  rules: [
    { name: "suppliers", effect: "allow", match: { kinds: ["erc20.transfer"], to: ["list:suppliers"] } }
  ],
  limits: [{ name: "usdc", chain: "8453", asset: token, per: "day", max: "20000" }]
}

const write = (name: string, value: unknown): string => {
  const path = join(folder, name)
  writeFileSync(path, typeof value === "string" ? value : JSON.stringify(value))
  return path
}

const run = (line: string) => Effect.runPromise(CommandLine.run(line.split(" "), castellan.env))
const refused = (line: string) =>
  Effect.runPromise(Effect.flip(CommandLine.run(line.split(" "), castellan.env)))
const json = async <A>(line: string): Promise<A> => JSON.parse(await run(`${line} --json`))

interface Issued {
  readonly id: string
  readonly key: string
}
interface Version {
  readonly subject: string
  readonly version: number
  readonly policy: unknown
}

let service: Awaited<ReturnType<typeof castellan.serve>>
let spender: Issued
beforeAll(async () => {
  service = await castellan.serve()
  spender = await json("keys create acme --scopes read,write")
})
afterAll(async () => {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
})

const file = write("policy.json", policy)

describe("castellan policies", () => {
  it("sets versions of the operator's layer, shows and lists them, and removes them", async () => {
    const name = `key:${spender.id}`
    expect(await run(`policies set acme ${name} ${file}`)).toBe(
      `version 1 of ${name} is in force within a second: enforce, rules: 1, limits: 1`
    )
    const observing = write("observing.json", { ...policy, mode: "observe", expiresAt: 1_900_000_000 })
    // The beginning of a key's id suffices.
    expect(await json(`policies set acme ${name.slice(0, 12)} ${observing}`)).toMatchObject({
      subject: name,
      layer: "operator",
      version: 2,
      by: "command line",
      requestId: null
    })
    await run(`policies set acme list:suppliers ${write("list.json", { addresses: [token.toLowerCase()] })}`)
    expect(await json(`policies show acme list:suppliers`)).toMatchObject({ policy: { addresses: [token] } })
    expect(await json<Version>(`policies show acme ${name} --version 1`)).toMatchObject({
      version: 1,
      policy
    })
    expect(await run("policies list acme")).toMatch(
      new RegExp(`^${name} +2 +observe, rules: 1, limits: 1, until 2030-03-17T17:46:40.000Z `, "m")
    )
    expect(await json(`policies usage acme ${name}`)).toEqual([
      { limit: "usdc", chain: "8453", asset: token, window: "day", held: "0", booked: "0", max: "20000" }
    ])
    await run(`policies remove acme ${name}`)
    expect(await refused(`policies show acme ${name}`)).toContain("there is no such policy")
    expect(await refused(`policies remove acme ${name}`)).toBe(`the operator has set no policy for ${name}`)
    const versions = await json<ReadonlyArray<Version>>(`policies history acme ${name}`)
    expect(versions.map(({ policy: content, version }) => [version, content === null])).toEqual([
      [3, true],
      [2, false],
      [1, false]
    ])
  })

  it("takes the example of docs/spending-rules.md", async () => {
    const [example = ""] = Snippets.of("docs/spending-rules.md").flatMap(({ language, text }) =>
      language === "json" ? [text] : []
    )
    expect(await json(`policies set acme wallet:${token} ${write("example.json", example)}`)).toMatchObject({
      policy: JSON.parse(example)
    })
    await run(`policies remove acme wallet:${token}`)
  })

  it("refuses unknown subjects, keys of other accounts and files of another form, and sets nothing", async () => {
    const other = await json<Issued>("keys create globex --scopes write")
    for (const [line, why] of [
      [`set acme key:${other.id} ${file}`, `key ${other.id} belongs to account globex, not to acme`],
      [`set acme key:00000000 ${file}`, "there is no key 00000000"],
      [`set acme wallet:0x1 ${file}`, "expected an address"],
      [`set acme everything ${file}`, "expected account, key:"],
      [`set acme account ${join(folder, "none.json")}`, "none.json cannot be read"],
      [`set acme account ${write("broken.json", "{")}`, "broken.json is not JSON"],
      [
        `set acme account ${write("wrong.json", { ...policy, mode: "asks", limit: [] })}`,
        'mode: expected "enforce" | "observe"'
      ],
      [`set acme list:x ${file}`, "addresses: is missing"],
      [`set initech account ${file}`, "there is no account called initech"],
      ["show acme account --layer mine", "--layer: expected operator or account"]
    ] as const)
      expect([line, await refused(`policies ${line}`)]).toEqual([line, expect.stringContaining(why)])
    expect(await json("policies list acme --layer operator")).toMatchObject([{ subject: "list:suppliers" }])
  })

  it("an account with the scope policies sets its own layer, and does not see the operator's", async () => {
    const setter = await json<Issued>("keys create acme --scopes read,policies")
    const ask = async (method: string, path: string, body?: unknown) => {
      const answer = await fetch(`${service.url}/policies${path}`, {
        method,
        headers: { "x-api-key": setter.key, "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) })
      })
      return JSON.parse(await answer.text())
    }
    await until("known", async () => ({ code: "policies" in (await ask("GET", "")) ? "known" : "not yet" }))
    await run(`policies set acme wallet:* ${file}`)
    expect(await ask("GET", "")).toEqual({ policies: [] })
    expect(await ask("GET", "/wallet:*")).toMatchObject({ code: "policy_not_found" })
    expect(await ask("GET", "/wallet:*?version=1")).toMatchObject({ code: "policy_not_found" })
    expect(await ask("PUT", "/wallet:*", policy)).toMatchObject({ version: 1, by: `key:${setter.id}` })
    expect(await json("policies list acme --layer account")).toMatchObject([{ subject: "wallet:*", policy }])
  })

  it("keys with policies have neither write nor sign, and no key has policies by default", async () => {
    for (const scopes of ["write,policies", "sign,policies"])
      expect(await refused(`keys create acme --scopes ${scopes}`)).toBe(
        "--scopes: a key with the scope policies has neither write nor sign: issue two keys"
      )
    expect(await refused(`keys scopes ${spender.id} --scopes policies,write`)).toContain("issue two keys")
    expect(await json("keys create acme")).toMatchObject({ scopes: ["read", "write", "sign", "webhooks"] })
  })

  it("a rotated key hands its policies of both layers over", async () => {
    const old = await json<Issued>("keys create acme --scopes write")
    await run(`policies set acme key:${old.id} ${file}`)
    const { id } = await json<Issued>(`keys rotate ${old.id} --overlap 1h`)
    expect(await json(`policies show acme key:${id}`)).toMatchObject({
      version: 1,
      policy,
      by: `key:${old.id}`
    })
    expect(await json(`policies show acme key:${old.id}`)).toMatchObject({ version: 1, policy })
  })
})
