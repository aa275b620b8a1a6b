import { readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Contract, Interface } from "ethers"
import { beforeAll, expect, test } from "vitest"
import {
  type EntryPointVersion,
  entryPoints,
  entryPointVersions
} from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { fundPaymaster } from "../../../src/hosts/cli/deploy/Suite.js"
import { at, type Chain, startChain } from "../../support/suite/Chain.js"
import { type Conditions, unbound } from "../../support/suite/Layouts.js"
import { execute, handleOps, type Op, refusal } from "../../support/suite/Ops.js"
import { mined } from "../../support/suite/Receipt.js"
import { use } from "../../support/Use.js"
import { check } from "../erc7562/Check.js"
import { creationKinds, ecdsaOperations, type Kind, operationKinds, passkeyKind } from "../erc7562/Kinds.js"
import { breaches } from "../erc7562/Rules.js"
import type { Entity } from "../erc7562/Scope.js"
import { accepted, type Row, table } from "../erc7562/Table.js"

/**
 * Findings of ERC-7562's rules for the validation of every kind of operation, from traces of the real EntryPoints,
 * against the table of docs/contracts.md. `ERC7562_TABLE=write` rewrites the table.
 */
const docs = fileURLToPath(new URL("../../../docs/contracts.md", import.meta.url))
const begin = "<!-- Written by `ERC7562_TABLE=write npx vitest run test/solidity/live/erc7562.test.ts`. -->"
const end = "<!-- End of the table of ERC-7562. -->"

const chain = use(startChain)
const plain = use(() => startChain(["--hardfork", "prague"]))
let bound: Conditions

beforeAll(async () => {
  await fundPaymaster(chain.stranger, chain.suite.paymaster, 10n ** 18n)
  bound = { validUntil: (await chain.now()) + 600, validAfter: 0, bundler: chain.bundler.address }
})

const checked = async (on: Chain, kind: Kind, version: EntryPointVersion) => {
  const op = await kind.op(version)
  expect(await refusal(on, version, [op]), kind.words).toBeUndefined()
  return check(on, version, op)
}

/** The findings of a kind, which must be the same on every EntryPoint. */
const rowOf = async (on: Chain, kind: Kind): Promise<Row> => {
  const [first = [], ...others] = await Promise.all(
    entryPointVersions.map((version) => checked(on, kind, version))
  )
  for (const other of others) expect(other, kind.words).toEqual(first)
  return { words: kind.words, creates: kind.words.startsWith("creation"), findings: first }
}

const rows: Array<Row> = []

test("the table of docs/contracts.md is what the traces of every kind of operation show", async () => {
  for (const kind of [...creationKinds(chain, bound), ...operationKinds(chain, bound)])
    rows.push(await rowOf(chain, kind))
  rows.push(await rowOf(plain, passkeyKind(plain, "passkey, unbound, no P-256 precompile")))
  const text = readFileSync(docs, "utf8")
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  const wanted = `${begin}\n\n${table(rows)}\n\n${end}`
  if (process.env.ERC7562_TABLE === "write" && from >= 0)
    writeFileSync(docs, text.slice(0, from) + wanted + text.slice(to + end.length))
  const written = readFileSync(docs, "utf8")
  expect(written.slice(written.indexOf(begin), written.indexOf(end) + end.length)).toBe(wanted)
}, 240_000)

const addStakeAbi = new Interface([
  "function addStake(uint32 unstakeDelaySec) payable",
  "function getDepositInfo(address account) view returns (tuple(uint256 deposit, bool staked, uint112 stake, uint32 unstakeDelaySec, uint48 withdrawTime))"
])
const day = 86_400

const isStaked = async (version: EntryPointVersion, address: string): Promise<boolean> => {
  const entryPoint = new Contract(entryPoints[version], addStakeAbi, chain.provider)
  const { stake, staked, unstakeDelaySec } = await entryPoint
    .getFunction("getDepositInfo")
    .staticCall(address)
  return staked && stake >= 10n ** 17n && unstakeDelaySec >= BigInt(day)
}

const stakedEntities = async (version: EntryPointVersion, op: Op): Promise<ReadonlyArray<Entity>> => {
  const paymaster = op.paymasterAndData.slice(0, 42)
  return [
    ...((await isStaked(version, op.sender)) ? (["account"] as const) : []),
    ...(paymaster !== "0x" && (await isStaked(version, paymaster)) ? (["paymaster"] as const) : [])
  ]
}

test.each(entryPointVersions)(
  "an unbound operation of a wallet that has staked itself breaks no rule on %s, sponsored by a staked paymaster too",
  async (version) => {
    const { address, calling, signed, sponsored } = ecdsaOperations(chain, `staked ${version}`)
    await chain.fund(await address(), 10n ** 19n)
    const stake = execute(entryPoints[version], addStakeAbi.encodeFunctionData("addStake", [day]), 10n ** 17n)
    const { outcomes } = await handleOps(chain, version, [await calling(version, stake)])
    expect(outcomes).toMatchObject([{ success: true }])
    const paymaster = at("SponsorPaymaster", chain.suite.paymaster, chain).connect(chain.factoryOwner)
    const sent = await paymaster
      .getFunction("addStake")
      .send(entryPoints[version], day, { value: 10n ** 17n, gasLimit: 200_000n })
    await mined(sent)
    for (const kind of [
      signed(unbound),
      signed({ ...bound, bundler: unbound.bundler }),
      sponsored(unbound)
    ]) {
      const op = await kind(version)
      expect(breaches(await check(chain, version, op), await stakedEntities(version, op))).toEqual([])
    }
    const op = await signed(bound)(version)
    expect(breaches(await check(chain, version, op), await stakedEntities(version, op))).toEqual([
      { entity: "account", rule: "OP-011", what: "ORIGIN", allowedByStakeOf: null }
    ])
  }
)

test("a creation would still be refused if the factory were staked and did not read the clock", () => {
  for (const row of rows.filter(({ creates }) => creates)) {
    const withoutClock = row.findings.filter(({ what }) => what !== "TIMESTAMP")
    expect(breaches(withoutClock, ["factory", "paymaster"]), row.words).toContainEqual({
      entity: "account",
      rule: "STO-033",
      what: "storage of the beacon",
      allowedByStakeOf: "account"
    })
    expect(accepted({ ...row, findings: withoutClock }), row.words).toMatch(/^never/)
  }
  const unboundRow = rows.find(({ words }) => words === "creation, unbound")
  const rest = unboundRow?.findings.filter(({ what }) => what !== "TIMESTAMP") ?? []
  expect(breaches(rest, ["factory", "account"])).toEqual([])
})

test.each(entryPointVersions)("a wallet cannot be staked before it exists on %s", async (version) => {
  const wallet = await creationKinds(chain, bound)[0]?.op(version)
  const entryPoint = new Contract(entryPoints[version], addStakeAbi, chain.stranger)
  await mined(await entryPoint.getFunction("addStake").send(day, { value: 10n ** 17n, gasLimit: 200_000n }))
  expect(await isStaked(version, chain.stranger.address)).toBe(true)
  expect(await isStaked(version, wallet?.sender ?? "")).toBe(false)
})

test("the factory has no function that stakes it", () => {
  const names = at("WalletFactory", chain.suite.factory, chain).interface.fragments.map((fragment) =>
    "name" in fragment ? fragment.name : ""
  )
  expect(names).toContain("createWallet")
  expect(names.filter((name) => /stake/i.test(String(name)))).toEqual([])
})
