import { describe, expect, it } from "@effect/vitest"
import { Interface } from "ethers"
import * as Targets from "../../../src/application/topups/Targets.js"
import * as Address from "../../../src/domain/primitives/Address.js"

const address = (digit: string) => Address.unsafe(`0x${digit.repeat(40)}`)
const [treasury, serviceEoa, other, paymaster, entryPoint] = ["1", "2", "3", "4", "5"].map(address) as [
  Address.Address,
  Address.Address,
  Address.Address,
  Address.Address,
  Address.Address
]
const level = { below: 1n, upTo: 2n, dailyCap: 3n }
const resolve = (...tos: ReadonlyArray<Targets.Target["to"]>) =>
  Targets.resolve(
    tos.map((to) => ({ to, ...level })),
    { serviceEoa, treasury }
  )

describe("targets of top-ups", () => {
  it("an EOA gets a plain transfer, a deposit a call of depositTo", () => {
    const depositTo = new Interface(["function depositTo(address)"])
    expect(resolve("serviceEoa", other, { deposit: paymaster, entryPoint })).toMatchObject([
      { ...level, name: serviceEoa, address: serviceEoa, data: "0x", deposit: null },
      { name: other, address: other },
      {
        name: `deposit:${entryPoint}:${paymaster}`,
        address: entryPoint,
        data: depositTo.encodeFunctionData("depositTo", [paymaster]),
        deposit: { entryPoint, paymaster }
      }
    ])
  })

  it("the treasury is refused, and a target under two names", () => {
    expect(resolve(other, treasury)).toBe("the treasury is a target")
    expect(resolve("serviceEoa", other, serviceEoa)).toBe(`target ${serviceEoa} is listed twice`)
    const deposit = { deposit: paymaster, entryPoint }
    expect(resolve(deposit, { ...deposit })).toContain("is listed twice")
    expect(resolve(deposit, { deposit: paymaster, entryPoint: other })).toHaveLength(2)
  })
})
