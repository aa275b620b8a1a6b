import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Snippets from "../../../scenarios/docs/Snippets.js"
import { make, until } from "../../../support/accounts/Castellan.js"
import * as CommandLine from "../../../support/process/CommandLine.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-policies-"))
const castellan = make(
  folder,
  {
    allowPrivateKeys: true,
    accounts: [
      { id: "acme", name: "Acme", tier: "pro", keys: [] },
      { id: "globex", name: "Globex", tier: "pro", keys: [] }
    ],
    providers: [{ kind: "private-key", name: "vault", keys: [{ name: "one", privateKey: { env: "ONE" } }] }],
    signers: [{ accounts: ["acme"], clientId: "c", versionId: "1", provider: "vault", key: "one" }]
  },
  { ONE: `0x${"4d".repeat(32)}` }
)

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

const { json, ok, refused } = CommandLine.lines(castellan.env)

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
    expect(await ok(`policies set acme ${name} ${file}`)).toBe(
      [
        `version 1 of ${name} is in force within a second: enforce, rules: 1, limits: 1`,
        "warning: rules[0].match.to: there is no list:suppliers"
      ].join("\n")
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
    await ok(`policies set acme list:suppliers ${write("list.json", { addresses: [token.toLowerCase()] })}`)
    expect(await json(`policies show acme list:suppliers`)).toMatchObject({ policy: { addresses: [token] } })
    expect(await json<Version>(`policies show acme ${name} --version 1`)).toMatchObject({
      version: 1,
      policy
    })
    expect(await ok("policies list acme")).toMatch(
      new RegExp(`^${name} +2 +observe, rules: 1, limits: 1, until 2030-03-17T17:46:40.000Z `, "m")
    )
    expect(await json(`policies usage acme ${name}`)).toEqual([
      { limit: "usdc", chain: "8453", asset: token, window: "day", held: "0", booked: "0", max: "20000" }
    ])
    await ok(`policies remove acme ${name}`)
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
    await ok(`policies remove acme wallet:${token}`)
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
    await ok(`policies set acme wallet:* ${file}`)
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

  it("evaluates a request by policies in force or by drafts, and counts nothing", async () => {
    const { id } = await json<Issued>("keys create acme --scopes sign")
    const fields = (names: string) =>
      names.split(",").map((each) => ({ type: each.split(" ")[0], name: each.split(" ")[1] }))
    const permit = (value: string) =>
      JSON.stringify({
        types: {
          Permit: fields("address owner,address spender,uint256 value,uint256 nonce,uint256 deadline")
        },
        primaryType: "Permit",
        domain: { name: "USD Coin", version: "2", chainId: 8453, verifyingContract: token },
        message: { owner: token, spender: token, value, nonce: 0, deadline: 1 }
      })
    const messages = [permit("15000"), permit("5001"), permit("5000")]
    const request = { messages, signer: { clientId: "c", versionId: "1" }, eip712: {} }
    const permits = { effect: "allow", match: { kinds: ["sign.typedData", "erc20.approve"] } }
    const rules = [{ ...permits, name: "permits" }]
    await ok(`policies set acme key:${id} ${write("permits.json", { ...policy, rules })}`)

    const evaluate = `policies evaluate acme ${write("sign.json", request)} --endpoint /sign --key ${id}`
    const ofKey = { subject: `key:${id}`, layer: "operator", version: 1, rule: null }
    const allowed = { verdict: "allow", policies: [{ ...ofKey, verdict: "allow", limit: null, left: null }] }
    for (const _ of ["first", "again"])
      expect(await json(evaluate)).toMatchObject([
        allowed,
        {
          verdict: "refuse",
          policies: [
            { ...ofKey, verdict: "refuse", limit: "usdc", left: "5000", reason: "5001 asked, 5000 left" }
          ]
        },
        allowed
      ])
    expect(await ok(evaluate)).toMatch(
      new RegExp(
        `^1 +erc20.approve 5001 ${token} ${token} +refuse +key:${id} version 1 .operator., limit usdc: 5001`,
        "m"
      )
    )

    const drafts = { [`key:${id}`]: { ...policy, rules: [{ ...permits, name: "none", effect: "refuse" }] } }
    const drafted = `${evaluate} --drafts ${write("drafts.json", drafts)}`
    const denied = { verdict: "refuse", policies: [{ version: null, rule: "none", limit: null, left: null }] }
    expect(await json(drafted)).toMatchObject([denied, denied, denied])
    expect(await ok(drafted)).toContain(`key:${id} draft (operator), rule none: `)
  })

  it("refuses to evaluate for unknown keys, and malformed requests and drafts", async () => {
    const body = write("plain.json", { messages: ["hello"], signer: { clientId: "c", versionId: "1" } })
    const signing = `acme ${body} --endpoint /sign`
    for (const [line, why] of [
      [`${signing} --key 00000000`, "there is no key 00000000"],
      [`initech ${body}`, "there is no account called initech"],
      [`acme ${join(folder, "none.json")}`, "none.json cannot be read"],
      [`acme ${write("cut.json", '{"messages": [')} --endpoint /sign`, "cut.json is not JSON"],
      [`acme ${body}`, "request.operations: is missing"],
      [
        `acme ${write("unsigned.json", { messages: "hello" })} --endpoint /sign`,
        "request.messages: expected an array"
      ],
      [
        `${signing} --drafts ${write("everything.json", { everything: null })}`,
        "policies.everything: expected account, key:"
      ]
    ] as const)
      expect([line, await refused(`policies evaluate ${line}`)]).toEqual([line, expect.stringContaining(why)])
  })
})
