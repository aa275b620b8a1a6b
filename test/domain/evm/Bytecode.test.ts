import { describe, expect, it } from "@effect/vitest"
import * as Bytecode from "../../../src/domain/evm/Bytecode.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"

/** `DUP1 PUSH4 selector EQ`, as Solidity asks for a function. */
const dispatch = (selector: string) => `8063${selector}14`
const code = (...parts: ReadonlyArray<string>) => Hex.unsafe(`0x${parts.join("")}`)

describe("code lacks a function", () => {
  it("code without the selector lacks the function", () => {
    const own = code(dispatch("a9059cbb"), "00")
    expect(Bytecode.lacks(own, "0xa9059cbb")).toBe(false)
    expect(Bytecode.lacks(own, "0x70a08231")).toBe(true)
  })

  it("code has a function only with its selector at whole bytes, leading zeros excluded", () => {
    expect(Bytecode.lacks(code("0a9059cbb0"), "0xa9059cbb")).toBe(true)
    expect(Bytecode.lacks(code("8062abcdef14"), "0x00abcdef")).toBe(false)
    expect(Bytecode.lacks(code("8000"), "0x00000000")).toBe(false)
  })

  it("code that delegates to other code lacks no function", () => {
    expect(Bytecode.lacks(code("5af4", "00"), "0x70a08231")).toBe(false)
    expect(Bytecode.lacks(code("5af2", "00"), "0x70a08231")).toBe(false)
    expect(Bytecode.lacks(code("ef0100", "11".repeat(20)), "0x70a08231")).toBe(false)
  })

  it("code lacks a function also when such an opcode is data of a PUSH or compiler metadata", () => {
    expect(Bytecode.lacks(code("60f4", "61f2f4", "00"), "0x70a08231")).toBe(true)
    expect(Bytecode.lacks(code("00fe", "a250f4f4f4f4", "0006"), "0x70a08231")).toBe(true)
    expect(Bytecode.lacks(code("00fe", "a250f4f4f4f4", "0007"), "0x70a08231")).toBe(false)
  })
})
