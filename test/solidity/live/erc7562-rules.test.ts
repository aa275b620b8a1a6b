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

/** Uses the slot keccak256(caller ++ 0) + n of the contract, as a mapping by the caller does. */
const mapping = (n: number) => `0x335f525f60205260405f2061${n.toString(16).padStart(4, "0")}01545000`
const codeSize = (of: string, more = "") => `0x73${of.slice(2)}3b${more}50`
const precompile = (number: number) => call(zeroPadValue(toBeHex(number), 20), "fa")
const another = "storage of another contract"

/** Instructions of an account, those of the helper that it calls, and what is found. */
const cases: ReadonlyArray<readonly [instructions: string, helping: string, finding: ReadonlyArray<object>]> =
  [
    ["0x", "0x00", []],
    ["0x3250", "0x00", never("OP-011", "ORIGIN")],
    ["0x3a50", "0x00", never("OP-011", "GASPRICE")],
    ["0x5f4050", "0x00", never("OP-011", "BLOCKHASH")],
    ["0x4150", "0x00", never("OP-011", "COINBASE")],
    ["0x4250", "0x00", never("OP-011", "TIMESTAMP")],
    ["0x4350", "0x00", never("OP-011", "NUMBER")],
    ["0x4450", "0x00", never("OP-011", expect.stringMatching("PREVRANDAO|DIFFICULTY"))],
    ["0x4550", "0x00", never("OP-011", "GASLIMIT")],
    ["0x4850", "0x00", never("OP-011", "BASEFEE")],
    ["0x5f5f5ff050", "0x00", never("OP-011", "CREATE")],
    [call(helper), "0xfe", never("OP-011", "INVALID")],
    [call(helper), "0x5fff", never("OP-011", "SELFDESTRUCT")],
    ["0x5a50", "0x00", never("OP-012", "GAS POP")],
    [call(helper, "f1", "5a"), "0x00", []],
    [call(helper), "0x0c", never("OP-013", expect.any(String))],
    [call(helper), "0x5b5f56", never("OP-020", "out of gas")],
    ["0x5f5f5f5ff550", "0x00", never("OP-031", "CREATE2")],
    [codeSize(nobody), "0x00", never("OP-041", "another contract")],
    [call(nobody, "fa"), "0x00", never("OP-041", "another contract")],
    [codeSize(helper), "0x00", []],
    [call(entryPoint, "f1", "61ea60", "6001"), "0x00", []],
    [codeSize(entryPoint, "15"), "0x00", []],
    [codeSize(entryPoint), "0x00", never("OP-054", "EntryPoint")],
    [call(entryPoint, "fa"), "0x00", never("OP-054", "EntryPoint")],
    [call(helper, "f1", "61ea60", "6001"), "0x00", never("OP-061", "CALL")],
    [precompile(1), "0x00", []],
    [precompile(9), "0x00", []],
    [precompile(0x100), "0x00", []],
    [precompile(0x0a), "0x00", never("OP-062", "precompile 10")],
    ["0x4750", "0x00", staked("OP-080", "SELFBALANCE")],
    ["0x303150", "0x00", staked("OP-080", "BALANCE")],
    // Its own storage, transient storage too (STO-010, OP-070); that of others, and what is associated with it (STO-021).
    ["0x5f5450600160015560015f5d5f5c50", "0x00", []],
    [call(helper), "0x5f545000", staked("STO-033", another)],
    [call(helper), "0x5f5c5000", staked("STO-033", `transient ${another}`)],
    [call(helper), "0x60015f5500", never("STO-010", `writing ${another}`)],
    [call(helper), mapping(0), []],
    [call(helper), mapping(128), []],
    [call(helper), mapping(129), staked("STO-033", another)]
  ]

test.each(cases)("%#: an account of %s that calls %s", async (instructions, helping, finding) => {
  expect(await foundIn(instructions, helping)).toEqual(finding)
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
