import { AbiCoder, getAddress, id, ZeroAddress } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import * as CountingProxy from "../../../tools/CountingProxy.js"
import { anvilKey } from "../../support/http/DevService.js"
import { documented } from "../../support/http/Examples.js"
import { startProxy } from "../../support/http/Proxy.js"
import { putReadCodes, type ReadCode } from "../../support/http/ReadCodes.js"
import { perFile } from "../../support/http/SharedService.js"
import { use } from "../../support/Use.js"

interface Element {
  readonly readIndex: number
  readonly results: ReadonlyArray<unknown>
  readonly errors: string | null
}

interface Read {
  readonly to: string
  readonly funcSignature: string
  readonly funcParams?: ReadonlyArray<unknown>
  readonly returnSignature: string
  readonly from?: string
}

const holder = anvilKey(9).address

const service = perFile()
const proxy = use(() => startProxy(service.info.rpc))
let at: Readonly<Record<ReadCode, string>>
beforeAll(async () => {
  at = await putReadCodes(service.provider)
})

const ask = (reads: ReadonlyArray<Read>, rest: object = {}) =>
  service.ok<ReadonlyArray<Element>>("/read", { reads, rpc: proxy.url, ...rest })

const read = (
  to: string,
  funcSignature: string,
  returnSignature: string,
  ...funcParams: ReadonlyArray<unknown>
) => ({
  to,
  funcSignature,
  funcParams,
  returnSignature
})

/** Results of `/read` for data that ethers encoded. */
const decoded = async (
  returnSignature: string,
  types: ReadonlyArray<string>,
  values: ReadonlyArray<unknown>
) => {
  const data = AbiCoder.defaultAbiCoder().encode(types, values)
  const provided = await service.provider.call({ to: at.echo, data: `0xffffffff${data.slice(2)}` })
  expect(provided).toBe(data)
  const call = { to: at.echo, funcSignature: `echo(${types.join()})`, funcParams: values, returnSignature }
  const [one] = await ask([call])
  return one
}

describe("a request and its answer", () => {
  it("are quoted unchanged in the reference", async () => {
    const { token } = service.info
    await documented(service, "/read", {
      reads: [
        read(token, "name()", "string"),
        read(token, "balanceOf(address)", "uint256", holder),
        read(token, "transfer(address,uint256)", "bool", holder, "5")
      ],
      rpc: service.info.rpc
    })
  })
})

describe("the result of a read", () => {
  it("is decoded by the types, in any spelling of the list", async () => {
    for (const returnSignature of [
      "uint256,string",
      "(uint256,string)",
      "returns (uint256 a, string memory b)"
    ])
      expect(await decoded(returnSignature, ["uint256", "string"], ["7", "sieben"])).toEqual({
        readIndex: 0,
        results: ["7", "sieben"],
        errors: null
      })
  })

  it("is of JSON: integers as strings, tuples by name or as arrays", async () => {
    const types = ["(address,bool,bytes)", "int8[]", "bytes4"]
    const values = [[holder, "true", "0xABcd"], ["-128", "127"], "0x01020304"]
    expect(
      (await decoded("((address who, bool yes, bytes data), int8[], bytes4)", types, values))?.results
    ).toEqual([{ who: holder, yes: true, data: "0xabcd" }, ["-128", "127"], "0x01020304"])
    expect((await decoded("tuple(address,bool,bytes),int8[],bytes4", types, values))?.results).toEqual([
      [holder, true, "0xabcd"],
      ["-128", "127"],
      "0x01020304"
    ])
  })
})

describe("the sender", () => {
  it("is from; without it the zero address, however many reads share a call", async () => {
    const sender = read(at.sender, "who()", "address")
    const from = getAddress(holder)
    expect((await ask([sender]))[0]?.results).toEqual([ZeroAddress])
    expect((await ask([{ ...sender, from: holder.toLowerCase() }]))[0]?.results).toEqual([from])
    expect((await ask([sender, sender])).map(({ results }) => results[0])).toEqual([ZeroAddress, ZeroAddress])
    expect((await ask([sender, { ...sender, from: holder }])).map(({ results }) => results[0])).toEqual([
      ZeroAddress,
      from
    ])
  })

  it("shared by a call puts no code at the zero address before the reads", async () => {
    const none = "nothing was returned: there is no contract at the address, or no such function"
    const zero = read(ZeroAddress, "aggregate3((address,bool,bytes)[])", "(bool,bytes)[]", "[]")
    const answers = await ask([zero, read(at.sender, "who()", "address")])
    expect(answers.map(({ errors }) => errors)).toEqual([none, null])
  })
})

describe("a read that fails", () => {
  it("fails separately, with the reason decoded, in its place", async () => {
    const { reverter, token } = service.info
    const good = read(token, "decimals()", "uint8")
    const cases: ReadonlyArray<readonly [Read, string | RegExp]> = [
      [read(reverter, "failWithReason(string)", "uint256", "not today"), "not today"],
      [read(reverter, "failAssert()", "uint256"), "Panic(0x01): assertion failed"],
      [read(reverter, "failDivision(uint256)", "uint256", "0"), "Panic(0x12): division or modulo by zero"],
      [
        { ...read(reverter, "failCustom(uint256,uint256)", "uint256", "7", "5"), from: holder },
        `Refused(who: ${holder}, needed: 7, had: 5)`
      ],
      [read(reverter, "failCustomEmpty()", "uint256"), "JustRefused()"],
      [read(reverter, "failWithoutReason()", "uint256"), "reverted without a reason"],
      [read(reverter, "failRaw(bytes)", "uint256", "0xdeadbeef"), "reverted with 0xdeadbeef"],
      [
        read(reverter, "noSuchFunction()", "uint256"),
        `the contract at ${reverter} has no function with the selector ${id("noSuchFunction()").slice(0, 10)}: check the signature`
      ],
      [read(holder, "balanceOf(address)", "uint256", holder), /^nothing was returned/],
      [read(token, "decimals()", "string"), /^the data do not fit \(string\)/],
      [read(token, "decimals(", "uint8"), /^invalid function signature: /],
      [read(token, "decimals()", "uint7"), /^invalid return signature: /],
      [read(token, "decimals()", ""), /^invalid return signature: /],
      [read(token, "balanceOf(address)", "uint256", "0x12"), /^invalid function parameter 0 \(address\): /],
      [read(token, "balanceOf(address)", "uint256"), /^invalid function parameters: expected 1/],
      [read("nobody", "decimals()", "uint8"), /^invalid to: expected an address/],
      [{ ...good, from: "0x1" }, /^invalid from: expected an address/],
      [read(reverter, "failOutOfGas()", "uint256"), "ran out of gas"]
    ]
    const useABI = ["error Refused(address who, uint256 needed, uint256 had)", "error JustRefused()"]
    for (const from of [undefined, holder]) {
      const reads = cases.flatMap(([one]) => [
        from === undefined ? { ...one, from: one.from } : { from, ...one },
        from === undefined ? good : { ...good, from }
      ])
      const answers = await ask(
        reads.map((one) => JSON.parse(JSON.stringify(one))),
        { useABI }
      )
      expect(answers.map(({ readIndex }) => readIndex)).toEqual(reads.map((_, index) => index))
      for (const [index, [one, expected]] of cases.entries()) {
        const { errors, results } = answers[2 * index] ?? {}
        expect(results, one.funcSignature).toEqual([])
        expect(errors, one.funcSignature).toMatch(
          expected instanceof RegExp ? expected : new RegExp(`^${expected.replace(/[()]/g, "\\$&")}$`)
        )
        expect(answers[2 * index + 1]).toEqual({ readIndex: 2 * index + 1, results: ["18"], errors: null })
      }
    }
  })

  it("takes no gas from the others, at any place, however often, and whether it fails or not", async () => {
    const burn = read(at.burner, "burn()", "uint256")
    const arson = read(at.arsonist, "burn()", "()")
    const heavy = read(at.heavy, "work()", "uint256")
    const proud = read(at.proud, "hasGas()", "bool")
    const expected = new Map<Read, Omit<Element, "readIndex">>([
      [burn, { results: [], errors: "ran out of gas" }],
      [arson, { results: [], errors: null }],
      [proud, { results: [true], errors: null }],
      [heavy, { results: ["1"], errors: null }]
    ])
    for (const reads of [
      [burn, proud, proud],
      [arson, proud, proud],
      [proud, burn, heavy, burn, burn, heavy, arson, heavy, proud],
      [...Array.from({ length: 20 }, () => burn), heavy, proud]
    ])
      expect(await ask(reads)).toEqual(reads.map((one, readIndex) => ({ readIndex, ...expected.get(one) })))
  })
})

describe("the cost of a request of reads", () => {
  const balances = (count: number, from?: string) =>
    Array.from({ length: count }, (_, n) => ({
      ...read(
        service.info.token,
        "balanceOf(address)",
        "uint256",
        `0x${(n + 1).toString(16).padStart(40, "0")}`
      ),
      ...(from !== undefined && { from })
    }))

  it.each([1, 10, 256])("%d reads: at most three RPC calls, one when the chain is known", async (count) => {
    const fresh = await startProxy(service.info.rpc)
    try {
      for (const [state, most] of [
        ["unknown", 3],
        ["known", 1]
      ] as const) {
        const answers = await ask(balances(count), { rpc: fresh.url })
        expect(answers.map(({ errors, results }) => errors ?? results[0])).toEqual(answers.map(() => "0"))
        expect(answers.length).toBe(count)
        const { calls, methods, roundTrips } = CountingProxy.cost(fresh.take())
        console.log(
          `/read of ${count}, chain ${state}: ${roundTrips} round trips, ${calls} calls (${[...methods.keys()]})`
        )
        expect(calls).toBeLessThanOrEqual(most)
        expect(roundTrips).toBeLessThanOrEqual(most)
      }
    } finally {
      await fresh.stop()
    }
  })
})
