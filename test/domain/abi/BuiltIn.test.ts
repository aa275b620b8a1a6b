import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as BuiltIn from "../../../src/domain/abi/BuiltIn.js"
import * as UseAbi from "../../../src/domain/abi/UseAbi.js"
import { words } from "../generators.js"

const abiOf = (path: string): UseAbi.UseAbi => {
  const text = readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8")
  return Result.getOrThrow(UseAbi.parse(JSON.parse(text).abi))
}

const events = new Set(BuiltIn.events.map(({ canonical }) => canonical))
const errors = new Set(BuiltIn.errors.map(({ canonical }) => canonical))

describe("BuiltIn", () => {
  it("every definition is read and stands in its canonical form, once", () => {
    expect(BuiltIn.events.map(({ canonical }) => canonical)).toEqual(BuiltIn.eventTexts)
    expect(BuiltIn.errors.map(({ canonical }) => canonical)).toEqual(BuiltIn.errorTexts)
    expect(events.size).toBe(BuiltIn.events.length)
    expect(new Set(BuiltIn.errors.map(({ selector }) => selector)).size).toBe(BuiltIn.errors.length)
  })

  const ours = words("WalletFactory Wallet CustodyValidator OperationLedger WalletProxy WalletBeacon")
  it.each([
    ...ours.map((name) => `contracts/artifacts/${name}.json`),
    ...["v0.6", "v0.7", "v0.8"].map(
      (version) => `node_modules/@account-abstraction/contracts-${version}/artifacts/EntryPoint.json`
    ),
    ...words("ERC20 ERC721 ERC1155 IERC4626").map(
      (name) => `node_modules/@openzeppelin/contracts/build/contracts/${name}.json`
    )
  ])("every event and error of %s is built in", (path) => {
    const abi = abiOf(path)
    expect(abi.events.map(({ canonical }) => canonical).filter((text) => !events.has(text))).toEqual([])
    expect(abi.errors.map(({ canonical }) => canonical).filter((text) => !errors.has(text))).toEqual([])
    expect(abi.functions.length + abi.events.length + abi.errors.length).toBeGreaterThan(0)
  })

  it("topics and selectors are the ones of the standards", () => {
    const topics = new Map(BuiltIn.events.map(({ canonical, topic }): [string, string] => [canonical, topic]))
    expect(topics.get("event Transfer(address indexed from, address indexed to, uint256 value)")).toBe(
      "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
    )
    const opEvent = BuiltIn.events.find(({ name }) => name === "UserOperationEvent")
    expect(opEvent?.topic).toBe("0x49628fd1471006c1482da88028e9ce4dbb080b815c9b0344d39e5a8e6ec1419f")
    const failedOp = BuiltIn.errors.find(({ name }) => name === "FailedOp")
    expect(failedOp?.selector).toBe("0x220266b6")
  })
})
