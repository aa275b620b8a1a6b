import { concat, toBeHex, zeroPadValue } from "ethers"
import { afterAll, beforeAll, expect, test } from "vitest"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { check } from "../../support/erc7562/Check.js"
import { type Chain, startChain } from "../../support/suite/Chain.js"
import { newOp, refusal } from "../../support/suite/Ops.js"

/** The checker of ERC-7562 against accounts and paymasters of a few bytes, each of which breaks one rule, or none. */
let chain: Chain
beforeAll(async () => {
  chain = await startChain()
})
afterAll(() => chain.stop())

const helper = `0x${"4e".repeat(20)}`
const nobody = `0x${"0d".repeat(20)}`
const entryPoint = entryPoints["v0.7"]

/** Returns a word 0: a valid validateUserOp. */
const accept = "0x60205ff3"
/** Returns an empty context and validation data 0: a valid validatePaymasterUserOp. */
const pay = "0x60405f5260605ff3"

const call = (to: string, opcode = "f1", gas = "61ea60", value = "5f") =>
  `0x5f5f5f5f${opcode === "f1" ? value : ""}73${to.slice(2)}${gas}${opcode}50`

let accounts = 0

/** A contract at a fresh address, with ether, and with a deposit so that it owes nothing. */
const place = async (code: string): Promise<string> => {
  accounts += 1
  const address = `0x${(0xacc000 + accounts).toString(16).padStart(40, "a")}`
  await chain.provider.send("anvil_setCode", [address, code])
  await chain.fund(address)
  const deposit = chain.entryPoint("v0.7").connect(chain.stranger).getFunction("depositTo")
  const sent = await deposit.send(address, { value: 10n ** 17n })
  await sent.wait()
  return address
}

/** What is found in an account of these instructions, which may call the helper. */
const foundIn = async (instructions: string, helping = "0x00") => {
  await chain.provider.send("anvil_setCode", [helper, helping])
  const op = newOp(await place(concat([instructions, accept])))
  expect(await refusal(chain, "v0.7", [op])).toBeUndefined()
  return check(chain, "v0.7", op)
}

const never = (rule: string, what: string) => [{ entity: "account", rule, what, allowedByStakeOf: null }]
const staked = (rule: string, what: string) => [
  { entity: "account", rule, what, allowedByStakeOf: "account" }
]

test("an account that does nothing breaks nothing", async () => {
  expect(await foundIn("0x")).toEqual([])
})

test.each([
  ["ORIGIN", "0x3250"],
  ["GASPRICE", "0x3a50"],
  ["BLOCKHASH", "0x5f4050"],
  ["COINBASE", "0x4150"],
  ["TIMESTAMP", "0x4250"],
  ["NUMBER", "0x4350"],
  ["PREVRANDAO", "0x4450"],
  ["GASLIMIT", "0x4550"],
  ["BASEFEE", "0x4850"],
  ["CREATE", "0x5f5f5ff050"]
])("%s is found, which nobody may use (OP-011)", async (name, instructions) => {
  const [finding] = await foundIn(instructions)
  expect(finding).toEqual({ ...never("OP-011", name)[0], what: expect.stringMatching(`${name}|DIFFICULTY`) })
})

test.each([
  ["INVALID", "0xfe"],
  ["SELFDESTRUCT", "0x5fff"]
])("%s in a contract that the account calls is found (OP-011)", async (name, helping) => {
  expect(await foundIn(call(helper), helping)).toEqual(never("OP-011", name))
})

test("GAS is allowed in front of a call alone (OP-012)", async () => {
  expect(await foundIn("0x5a50")).toEqual(never("OP-012", "GAS POP"))
  expect(await foundIn(call(helper, "f1", "5a"))).toEqual([])
})

test("an instruction that is not assigned is found (OP-013)", async () => {
  expect(await foundIn(call(helper), "0x0c")).toMatchObject([{ rule: "OP-013", allowedByStakeOf: null }])
})

test("a call that runs out of gas is found (OP-020)", async () => {
  expect(await foundIn(call(helper), "0x5b5f56")).toEqual(never("OP-020", "out of gas"))
})

test("CREATE2 by the account is found (OP-031)", async () => {
  expect(await foundIn("0x5f5f5f5ff550")).toEqual(never("OP-031", "CREATE2"))
})

test("the use of an address without code is found (OP-041)", async () => {
  expect(await foundIn(`0x73${nobody.slice(2)}3b50`)).toEqual(never("OP-041", "another contract"))
  expect(await foundIn(call(nobody, "fa"))).toEqual(never("OP-041", "another contract"))
  expect(await foundIn(`0x73${helper.slice(2)}3b50`)).toEqual([])
})

test("the EntryPoint may be paid, and asked whether it has code, and nothing else (OP-051 to OP-054)", async () => {
  expect(await foundIn(call(entryPoint, "f1", "61ea60", "6001"))).toEqual([])
  expect(await foundIn(`0x73${entryPoint.slice(2)}3b1550`)).toEqual([])
  expect(await foundIn(`0x73${entryPoint.slice(2)}3b50`)).toEqual(never("OP-054", "EntryPoint"))
  expect(await foundIn(call(entryPoint, "fa"))).toEqual(never("OP-054", "EntryPoint"))
})

test("value to anybody but the EntryPoint is found (OP-061)", async () => {
  expect(await foundIn(call(helper, "f1", "61ea60", "6001"))).toEqual(never("OP-061", "CALL"))
})

test("precompiles 1 to 9 and P-256 are allowed, others are found (OP-062)", async () => {
  const precompile = (number: number) => call(zeroPadValue(toBeHex(number), 20), "fa")
  expect(await foundIn(precompile(1))).toEqual([])
  expect(await foundIn(precompile(9))).toEqual([])
  expect(await foundIn(precompile(0x100))).toEqual([])
  expect(await foundIn(precompile(0x0a))).toEqual(never("OP-062", "precompile 10"))
})

test("balances are for the staked (OP-080)", async () => {
  expect(await foundIn("0x4750")).toEqual(staked("OP-080", "SELFBALANCE"))
  expect(await foundIn("0x303150")).toEqual(staked("OP-080", "BALANCE"))
})

test("an account uses its own storage as it likes, transient storage too (STO-010, OP-070)", async () => {
  expect(await foundIn("0x5f5450600160015560015f5d5f5c50")).toEqual([])
})

test("a staked account may read storage of others, and nobody may write it (STO-033)", async () => {
  expect(await foundIn(call(helper), "0x5f545000")).toEqual(staked("STO-033", "storage of another contract"))
  expect(await foundIn(call(helper), "0x5f5c5000")).toEqual(
    staked("STO-033", "transient storage of another contract")
  )
  expect(await foundIn(call(helper), "0x60015f5500")).toEqual(
    never("STO-010", "writing storage of another contract")
  )
})

/** Uses the slot keccak256(caller ++ 0) + n of the contract, as a mapping by the caller does. */
const mapping = (n: number) => `0x335f525f60205260405f2061${n.toString(16).padStart(4, "0")}01545000`

test("storage that is associated with an account that exists is its own (STO-021)", async () => {
  expect(await foundIn(call(helper), mapping(0))).toEqual([])
  expect(await foundIn(call(helper), mapping(128))).toEqual([])
  expect(await foundIn(call(helper), mapping(129))).toEqual(staked("STO-033", "storage of another contract"))
})

/** What is found in a paymaster of these instructions. */
const foundInPaymaster = async (instructions: string, helping = "0x00") => {
  await chain.provider.send("anvil_setCode", [helper, helping])
  const paymaster = await place(concat([instructions, pay]))
  const limits = concat([toBeHex(100_000, 16), toBeHex(0, 16)])
  const op = newOp(await place(accept), { paymasterAndData: concat([paymaster, limits]) })
  expect(await refusal(chain, "v0.7", [op])).toBeUndefined()
  return check(chain, "v0.7", op)
}

test("a paymaster's own storage, and what is associated with it, are for a staked one (STO-031, STO-032)", async () => {
  expect(await foundInPaymaster("0x")).toEqual([])
  const ofPaymaster = (rule: string, what: string) => [
    { entity: "paymaster", rule, what, allowedByStakeOf: "paymaster" }
  ]
  expect(await foundInPaymaster("0x5f5450")).toEqual(ofPaymaster("STO-031", "own storage"))
  expect(await foundInPaymaster("0x4250")).toEqual([
    { entity: "paymaster", rule: "OP-011", what: "TIMESTAMP", allowedByStakeOf: null }
  ])
  expect(await foundInPaymaster(call(helper), mapping(0))).toEqual(
    ofPaymaster("STO-032", "its storage of another contract")
  )
})
