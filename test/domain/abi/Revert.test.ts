import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { Interface } from "ethers/abi"
import * as fc from "fast-check"
import * as BuiltIn from "../../../src/domain/abi/BuiltIn.js"
import * as ErrorDefinition from "../../../src/domain/abi/ErrorDefinition.js"
import * as Revert from "../../../src/domain/abi/Revert.js"
import * as EntryPointReason from "../../../src/domain/erc4337/EntryPointReason.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { forAll, hex } from "../generators.js"

const error = (text: string): ErrorDefinition.ErrorDefinition =>
  Result.getOrThrow(ErrorDefinition.parse(text))

/** Revert data as ethers writes them. */
const data = (definition: string, ...values: ReadonlyArray<unknown>): Hex.Hex => {
  const oracle = new Interface([`error ${definition}`])
  return Hex.unsafe(oracle.encodeErrorResult(definition.slice(0, definition.indexOf("(")), values))
}

const reason = (text: string): Hex.Hex => data("Error(string)", text)

const decodeWith = (
  errors: ReadonlyArray<ErrorDefinition.ErrorDefinition>,
  revertData: Hex.Hex
): Revert.Revert => Revert.decoder([Revert.index(errors)])(revertData)

const message = (bytes: Hex.Hex, ...errors: ReadonlyArray<string>): string =>
  decodeWith(errors.map(error), bytes).message

const address = "0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789"

describe("Revert", () => {
  const shown = { name: null, args: null, code: null }
  it.each<[string, Hex.Hex, Revert.Revert]>([
    [
      "a reason",
      reason("too poor"),
      { ...shown, kind: "error", name: "Error", args: { reason: "too poor" }, message: "too poor" }
    ],
    ["no data", Hex.empty, { ...shown, kind: "empty", message: "reverted without a reason" }],
    [
      "unknown data",
      Hex.unsafe("0xdeadbeef"),
      { ...shown, kind: "unknown", message: "reverted with 0xdeadbeef" }
    ]
  ])("%s is shown as it is", (_, bytes, expected) => {
    expect(decodeWith([], bytes)).toEqual(expected)
  })

  it.each<[Hex.Hex, string]>([
    [reason(""), "reverted with an empty reason"],
    [Hex.unsafe("0xde"), "reverted with 0xde"],
    [Hex.unsafe(`0x${"de".repeat(100_000)}`), `reverted with 0x${"de".repeat(68)}... (100000 bytes)`],
    [data("Panic(uint256)", 0x00), "Panic(0x00): generic compiler panic"],
    [data("Panic(uint256)", 0x01), "Panic(0x01): assertion failed"],
    [data("Panic(uint256)", 0x11), "Panic(0x11): arithmetic overflow or underflow"],
    [data("Panic(uint256)", 0x12), "Panic(0x12): division or modulo by zero"],
    [data("Panic(uint256)", 0x21), "Panic(0x21): value is not a member of the enum"],
    [data("Panic(uint256)", 0x22), "Panic(0x22): storage byte array is badly encoded"],
    [data("Panic(uint256)", 0x31), "Panic(0x31): pop of an empty array"],
    [data("Panic(uint256)", 0x32), "Panic(0x32): array index out of bounds"],
    [data("Panic(uint256)", 0x41), "Panic(0x41): too much memory allocated"],
    [data("Panic(uint256)", 0x51), "Panic(0x51): call of an uninitialised internal function"],
    [data("Panic(uint256)", 0x99), "Panic(0x99): unknown panic code"]
  ])("%.20s is shown as %s", (bytes, expected) => {
    const revert = decodeWith([], bytes)
    expect(revert.message).toBe(expected)
    if (expected.startsWith("Panic"))
      expect(revert).toMatchObject({ kind: "panic", args: { code: String(BigInt(`0x${bytes.slice(10)}`)) } })
  })

  it("a custom error is shown with its arguments", () => {
    const definition = error("error NotEnough(uint256 available, uint256 required)")
    expect(decodeWith([definition], data("NotEnough(uint256,uint256)", 5, 7))).toEqual({
      kind: "custom",
      name: "NotEnough",
      args: { available: "5", required: "7" },
      message: "NotEnough(available: 5, required: 7)",
      code: null
    })
    expect(message(data("NotEnough(uint256,uint256)", 5, 7), "NotEnough(uint256,uint256)")).toBe(
      "NotEnough(5, 7)"
    )
    expect(message(data("Paused()"), "Paused()")).toBe("Paused()")
  })

  it("strings, bytes, arrays and tuples of a custom error are shown in short", () => {
    const text = "E(string s, bytes b, uint8[] n, (address a, bool ok) t)"
    const types = "E(string,bytes,uint8[],tuple(address,bool))"
    expect(message(data(types, 'say "no"', "0xabcd", [1, 2], [address, true]), text)).toBe(
      `E(s: "say \\"no\\"", b: 0xabcd, n: [1, 2], t: (a: ${address}, ok: true))`
    )
    const long = message(
      data(types, "x".repeat(9_999), `0x${"ab".repeat(100)}`, new Array(50).fill(1), [address, false]),
      text
    )
    expect(long).toContain(`s: "${"x".repeat(253)}..."`)
    expect(long).toContain(`b: 0x${"ab".repeat(68)}... (100 bytes)`)
    expect(long).toContain("n: [1, 1, 1, 1, 1, 1, 1, 1, ... (50 elements)]")
  })

  it.each<[string, Hex.Hex]>([
    ["a bare selector", Hex.unsafe("0x08c379a0")],
    ["a truncated reason", Hex.unsafe(reason("too poor").slice(0, 150))],
    ["an offset out of the data", Hex.unsafe(`0x08c379a0${"f".repeat(64)}`)],
    ["a truncated panic", Hex.unsafe("0x4e487b7111")]
  ])("%s is unknown data", (_, bytes) => {
    expect(decodeWith([], bytes).kind).toBe("unknown")
  })

  it("a failed op is reported with its code, meaning and remedy", () => {
    const failed = (text: string) => decodeWith([], data("FailedOp(uint256,string)", 3, text))
    expect(failed("AA24 signature error")).toMatchObject({
      kind: "failedOp",
      name: "FailedOp",
      args: { opIndex: "3", reason: "AA24 signature error" },
      code: "AA24",
      message: expect.stringMatching(/^AA24 signature error: the wallet does not accept the signature; sign /)
    })
    expect(failed("AA21 didn't pay prefund").message).toMatch(/^AA21 didn't pay prefund: .*; fund the wallet/)
    expect(failed("AA23 reverted: not today").message).toMatch(
      /^AA23 reverted: not today: the wallet's validation reverted/
    )
    expect(failed("AA77 something new")).toMatchObject({ message: "AA77 something new", code: null })
  })

  it("the EntryPoint's plain reasons are explained, other contracts' are not", () => {
    const entryPoint = decodeWith([], reason("AA95 out of gas"))
    expect([entryPoint.kind, entryPoint.code]).toEqual(["error", "AA95"])
    expect(entryPoint.message).toMatch(/^AA95 out of gas: .*; raise the transaction's gas limit/)
    for (const text of ["AA battery is empty", "AA24 but from a token"])
      expect(message(reason(text))).toBe(text)
  })

  it("the revert inside of a failed op is decoded", () => {
    const failed = (inner: string): Hex.Hex =>
      data("FailedOpWithRevert(uint256,string,bytes)", 0, "AA23 reverted", inner)
    const postOp = data("PostOpReverted(bytes)", reason("no allowance"))
    const all = [...BuiltIn.errorTexts, "NotEnough(uint256 available, uint256 required)"]
    for (const [inner, shown] of [
      [data("NotEnough(uint256,uint256)", 5, 7), " (NotEnough(available: 5, required: 7))"],
      [reason("closed"), " (closed)"],
      ["0x", ""],
      ["0xdeadbeef", " (0xdeadbeef)"],
      [postOp, " (PostOpReverted(returnData: no allowance))"]
    ] as const)
      expect(message(failed(inner), ...all)).toContain(
        `AA23 reverted${shown}: the wallet's validation reverted`
      )
    expect(decodeWith(BuiltIn.errors, failed(postOp)).args).toEqual({
      opIndex: "0",
      reason: "AA23 reverted",
      inner: postOp
    })
  })

  it("reverts nested without end are cut off", () => {
    let nested = reason("the core")
    for (let i = 0; i < 200; i++) nested = data("PostOpReverted(bytes)", nested)
    const revert = decodeWith(BuiltIn.errors, nested)
    expect(revert.message).toMatch(/^(PostOpReverted\(returnData: ){9}0x/)
    const wide = data(
      "Many(bytes[])",
      new Array(8).fill(data("Many(bytes[])", new Array(8).fill(reason("leaf"))))
    )
    expect(message(wide, "Many(bytes[])").length).toBeLessThanOrEqual(Revert.maxMessage)
  })

  it("a message is one short line, whatever the contract says", () => {
    const hostile = "line\r\nbreak\u0000\u001b[31m\u202e\u2028\u200b\u{10ffff}end"
    expect(message(reason(hostile))).toBe("line  break  [31m   \u{10ffff}end")
    expect(message(data("E(string)", hostile), "E(string)")).toMatch(/^E\("line {2}break/)
    expect(message(reason(`${"x".repeat(252)}\u{1f3f0}${"y".repeat(100_000)}`))).toBe(`${"x".repeat(252)}...`)
    const wide = `E(${new Array(30).fill("string").join(",")})`
    expect(message(data(wide, ...new Array(30).fill("z".repeat(300))), wide)).toHaveLength(Revert.maxMessage)
  })

  it("standard errors cannot be redefined, and the first of equal definitions decodes", () => {
    expect(message(reason("x"), "Error(string mine)")).toBe("x")
    expect(message(data("E(uint256)", 1), "E(uint256 first)", "E(uint256 second)")).toBe("E(first: 1)")
  })

  it("errors whose selectors collide are distinguished by their data", () => {
    // Two names ground to one selector; the ABI of the data decides.
    const one = error("error collate_propagate_storage(bytes16 a)")
    const two = error("error burn(uint256 a)")
    expect(one.selector).toBe(two.selector)
    const high = Hex.unsafe(`${one.selector}${"ab".repeat(16)}${"00".repeat(16)}`)
    const low = Hex.unsafe(`${one.selector}${"00".repeat(31)}05`)
    expect(decodeWith([one, two], high).name).toBe("collate_propagate_storage")
    expect(decodeWith([one, two], low).name).toBe("burn")
  })

  it("a caller's definition comes before a standard error of the same selector", () => {
    const squatter = { ...error("error Squatter(uint256 offset)"), selector: Hex.unsafe("0x08c379a0") }
    expect(decodeWith([squatter], reason("x")).message).toBe("Squatter(offset: 32)")
    expect(decodeWith([{ ...squatter, inputs: error("error S(bool b)").inputs }], reason("x")).message).toBe(
      "x"
    )
  })

  it("earlier indexes come first, and what one lacks the next one has", () => {
    const own = Revert.index([error("error Same(uint256 own)")])
    const registered = Revert.index([error("error Same(uint256 theirs)"), error("error Other(bool b)")])
    const decode = Revert.decoder([own, registered, BuiltIn.errorIndex])
    expect(decode(data("Same(uint256)", 1)).message).toBe("Same(own: 1)")
    expect(decode(data("Other(bool)", true)).message).toBe("Other(b: true)")
    expect(decode(data("FailedCall()")).message).toBe("FailedCall()")
    expect(decode(reason("plain")).message).toBe("plain")
  })

  it("standard errors that a caller's ABI lists are worded as ever", () => {
    const listed = ["error Error(string)", "error Panic(uint256)", "error FailedOp(uint256 i, string r)"]
    expect(message(reason("plain"), ...listed)).toBe("plain")
    expect(message(data("Panic(uint256)", 0x12), ...listed)).toBe("Panic(0x12): division or modulo by zero")
    const failed = decodeWith(
      listed.map(error),
      data("FailedOp(uint256,string)", 0, "AA25 invalid account nonce")
    )
    expect([failed.kind, failed.code, failed.args]).toEqual([
      "failedOp",
      "AA25",
      { i: "0", r: "AA25 invalid account nonce" }
    ])
  })

  it("an error nested by a wallet, a paymaster or a batch is decoded", () => {
    const all = ["error NotPaid(address who, uint256 missing)", ...BuiltIn.errorTexts]
    const notPaid = data("NotPaid(address,uint256)", address, 7)
    const shown = `NotPaid(who: ${address}, missing: 7)`
    const failed = (text: string, inner: string) =>
      data("FailedOpWithRevert(uint256,string,bytes)", 0, text, inner)
    const late = data("ExecuteError(uint256,bytes)", 2, reason("late"))
    for (const [bytes, expected] of [
      [data("ExecuteError(uint256,bytes)", 1, notPaid), `ExecuteError(index: 1, error: ${shown})`],
      [failed("AA33 reverted", notPaid), `AA33 reverted (${shown}): the paymaster's validation reverted`],
      [
        failed("AA50 postOp reverted", data("PostOpReverted(bytes)", late)),
        "AA50 postOp reverted (PostOpReverted(returnData: ExecuteError(index: 2, error: late)))"
      ],
      [data("Wrapped(bytes[])", [notPaid, "0x"]), `Wrapped(all: [${shown}, 0x])`]
    ] as const)
      expect(message(bytes, "error Wrapped(bytes[] all)", ...all)).toContain(expected)
  })

  it("truncated revert data keep their remaining text and bytes", () => {
    const cut = (bytes: Hex.Hex, size: number): Hex.Hex => Hex.unsafe(bytes.slice(0, 2 + 2 * size))
    const long = "because ".repeat(500)
    const because = cut(reason(long), 2_048)
    expect(decodeWith([], because)).toMatchObject({
      kind: "error",
      args: { reason: long.slice(0, 1_980) }
    })
    expect(message(because)).toMatch(/^because because .*\.\.\.$/)
    expect(message(data("FailedOpWithRevert(uint256,string,bytes)", 0, "AA23 reverted", because))).toMatch(
      /^AA23 reverted \(because because /
    )
    const nested = cut(data("ExecuteError(uint256,bytes)", 0, reason(long)), 2_048)
    expect(message(nested, ...BuiltIn.errorTexts)).toMatch(/^ExecuteError\(index: 0, error: because because /)
    const custom = data("Refused(bytes32,string,uint256)", `0x${"11".repeat(32)}`, long, 5)
    expect(message(cut(custom, 1_000), "error Refused(bytes32 id, string why, uint256 n)")).toMatch(
      /^Refused\(id: 0x1{64}, why: "because because .*", n: 5\)$/
    )
    // Numbers are never made up: a list that lost elements stays raw.
    const list = cut(data("List(uint256[])", new Array(100).fill(1)), 2_048)
    expect(decodeWith([error("error List(uint256[] l)")], list).kind).toBe("unknown")
    // Nothing hands on less than this: such data do not fit.
    expect(decodeWith([], cut(reason("a".repeat(200)), 150)).kind).toBe("unknown")
  })

  it("any data, and any that were cut anywhere, are decoded, and never throw", () => {
    const decode = Revert.decoder([BuiltIn.errorIndex])
    const late = data("ExecuteError(uint256,bytes)", 0, reason("because ".repeat(100)))
    const whole = data("FailedOpWithRevert(uint256,string,bytes)", 0, "AA23 reverted", late)
    for (let size = 0; size <= Hex.size(whole); size++) {
      const { kind, message: shown } = decode(Hex.slice(whole, 0, size))
      expect(shown.length).toBeLessThanOrEqual(Revert.maxMessage)
      expect(kind).toBe(size === 0 ? "empty" : size < 512 ? "unknown" : "failedOp")
    }
    const selectors = [...BuiltIn.errors.map(({ selector }) => selector), "0x08c379a0", "0x4e487b71", "0x"]
    const small = fc.array(fc.constantFrom(0, 1, 2, 32, 64, 96, 128), { maxLength: 12 })
    const body = fc.oneof(
      hex(300).map((bytes) => bytes.slice(2)),
      small.map((values) => values.map((n) => n.toString(16).padStart(64, "0")).join(""))
    )
    forAll(
      [fc.constantFrom(...selectors), body],
      (selector, tail) => {
        const revert = decode(Hex.unsafe(`${selector}${tail}`))
        expect(revert.message.length).toBeLessThanOrEqual(Revert.maxMessage)
        expect(revert.message).toMatch(/^[^\p{Cc}\u2028\u2029]+$/u)
        expect(JSON.stringify(revert)).toContain(revert.kind)
      },
      { numRuns: 2_000 }
    )
  })
})

describe("EntryPointReason", () => {
  it("each code stands once, with a meaning and a remedy", () => {
    const codes = EntryPointReason.all.map(({ code }) => code)
    expect(new Set(codes).size).toBe(codes.length)
    for (const { code, meaning, remedy } of EntryPointReason.all) {
      expect(code).toMatch(/^AA[0-9]{2}$/)
      expect(meaning.length).toBeGreaterThan(10)
      expect(remedy.length).toBeGreaterThan(10)
    }
  })

  it.each(["0.6", "0.7", "0.8"])("every code in EntryPoint v%s's bytecode is explained", (version) => {
    for (const name of ["EntryPoint", "SenderCreator"]) {
      const path = `../../../node_modules/@account-abstraction/contracts-v${version}/artifacts/${name}.json`
      const { bytecode } = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"))
      const text = Buffer.from(String(bytecode).slice(2), "hex").toString("latin1")
      const codes = new Set([...text.matchAll(/AA[0-9]{2}(?= [a-z])/g)].map(([code]) => code))
      if (name === "EntryPoint") expect(codes.size).toBeGreaterThan(15)
      for (const code of codes) expect(EntryPointReason.find(`${code} `)?.code).toBe(code)
    }
  })

  it("an EntryPoint code is read only whole and at the beginning", () => {
    for (const text of ["", "AA", "AA2", "AA244 x", "AA24x", "xAA24", " AA24", "aa24", "AA00 new"])
      expect(EntryPointReason.find(text)).toBeNull()
    expect(EntryPointReason.find("AA24")?.code).toBe("AA24")
    expect(EntryPointReason.find("AA23 reverted: x")?.code).toBe("AA23")
  })
})
