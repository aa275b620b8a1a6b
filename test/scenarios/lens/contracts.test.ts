import { getAddress, isCallException } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { reverterAbi, tokenAbi } from "../../support/lens/Abis.js"
import { World } from "../../support/lens/World.js"

let world: World

beforeAll(async () => {
  world = await World.start()
})
afterAll(() => world.stop())

describe("the test token", () => {
  it("is minted by anyone, has 18 decimals, and logs transfers from zero", async () => {
    const holder = getAddress(`0x${"be".repeat(20)}`)
    const receipt = await world.send(world.token, tokenAbi.encodeFunctionData("mint", [holder, 5n]))
    const [log] = receipt.logs.map((each) => tokenAbi.parseLog(each))
    expect([log?.name, log?.args.toArray()]).toEqual(["Transfer", [`0x${"0".repeat(40)}`, holder, 5n]])
    const ask = async (name: string, ...args: ReadonlyArray<unknown>) => {
      const answer = await world.provider.call({
        to: world.token,
        data: tokenAbi.encodeFunctionData(name, args)
      })
      return tokenAbi.decodeFunctionResult(name, answer).toArray()
    }
    expect(await ask("balanceOf", holder)).toEqual([5n])
    expect(await ask("decimals")).toEqual([18n])
    expect(await ask("symbol")).toEqual(["CTT"])
  })
})

describe("the reverter", () => {
  const from = `0x${"ca".repeat(20)}`
  beforeAll(() => world.setBalance(from, 10n ** 18n))

  /** Revert data of a call. */
  const failure = async (data: string, value = 0n, gas = 1_000_000n): Promise<string | null> => {
    try {
      await world.provider.call({ from, to: world.reverter, data, value, gasLimit: gas })
    } catch (cause) {
      if (isCallException(cause)) return cause.data
      throw cause
    }
    throw new Error("it did not revert")
  }
  const named = async (name: string, ...args: ReadonlyArray<unknown>) => {
    const data = await failure(reverterAbi.encodeFunctionData(name, args))
    const error = reverterAbi.parseError(data ?? "0x")
    return [error?.name, error?.args.toArray(true)]
  }

  it("fails with a reason, with a panic of each kind, and with custom errors", async () => {
    expect(await named("failWithReason", "too late")).toEqual(["Error", ["too late"]])
    expect(await named("failAssert")).toEqual(["Panic", [0x01n]])
    expect(await named("failOverflow", 3n)).toEqual(["Panic", [0x11n]])
    expect(await named("failDivision", 0n)).toEqual(["Panic", [0x12n]])
    expect(await named("failIndex")).toEqual(["Panic", [0x32n]])
    expect(await named("failCustom", 9n, 4n)).toEqual(["Refused", [getAddress(from), 9n, 4n]])
    const id = `0x${"1d".repeat(32)}`
    expect(await named("failCustomDynamic", id, "why", [1n, 2n])).toEqual([
      "RefusedBecause",
      [id, "why", [1n, 2n]]
    ])
    expect(await named("failCustomEmpty")).toEqual(["JustRefused", []])
  })

  it("fails with no data, with any data, and with very much of it", async () => {
    expect(await failure(reverterAbi.encodeFunctionData("failWithoutReason"))).toBe("0x")
    expect(await failure(reverterAbi.encodeFunctionData("failRaw", ["0xdeadbeef01"]))).toBe("0xdeadbeef01")
    expect(await failure(reverterAbi.encodeFunctionData("failRaw", ["0x"]))).toBe("0x")
    expect(await failure(reverterAbi.encodeFunctionData("failHuge", [70_000]))).toBe(
      `0x${"ff".repeat(70_000)}`
    )
    expect(await failure(reverterAbi.encodeFunctionData("failOnValue"), 1n)).toBe("0x")
    expect(await failure("0x")).toBe("0x")
  })

  it("burns all the gas it is given", async () => {
    const data = reverterAbi.encodeFunctionData("failOutOfGas")
    const sent = await world.payer.sendTransaction({ to: world.reverter, data, gasLimit: 200_000n })
    const receipt = await world.provider.waitForTransaction(sent.hash).catch(() => null)
    const mined = receipt ?? (await world.provider.getTransactionReceipt(sent.hash))
    expect([mined?.status, mined?.gasUsed]).toEqual([0, 200_000n])
  })

  it("succeeds with value and an event, and counts per id", async () => {
    const receipt = await world.send(world.reverter, reverterAbi.encodeFunctionData("succeed", ["fine"]), 12n)
    const [log] = receipt.logs.map((each) => reverterAbi.parseLog(each))
    expect([log?.name, log?.args[1], log?.args[2]]).toEqual(["Succeeded", 12n, "fine"])
    const [one, two] = [`0x${"01".repeat(32)}`, `0x${"02".repeat(32)}`]
    for (const id of [one, two, one])
      await world.send(world.reverter, reverterAbi.encodeFunctionData("bump", [id]))
    for (const [id, count] of [
      [one, 2n],
      [two, 1n]
    ]) {
      const data = reverterAbi.encodeFunctionData("counts", [id])
      expect(BigInt(await world.provider.call({ to: world.reverter, data }))).toBe(count)
    }
  })
})
