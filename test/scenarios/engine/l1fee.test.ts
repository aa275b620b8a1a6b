import * as Effect from "effect/Effect"
import { Contract, Interface } from "ethers"
import { beforeEach, describe, expect, it } from "vitest"
import type { Version } from "../../../src/domain/erc4337/EntryPoint.js"
import * as L1Fee from "../../../src/domain/erc4337/gas/L1Fee.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { Address, useStack } from "../../support/stack/Stack.js"
import { npmInterface } from "../lens/Abis.js"
import { compile } from "../lens/Solidity.js"

const { abi, code } = compile(new URL("../lens/GasPriceOracle.sol", import.meta.url))("GasPriceOracle")
const gwei = 10n ** 9n
const salts = ["one", "two", "three", "four", "five"]

describe("the layer 1 fee of an OP-stack chain", () => {
  let oracle: Contract
  let exchanges: Array<ReadonlyArray<string>> = []
  const profile = { l1Fee: "op-stack" as const }
  const stack = useStack({ profile, onExchange: (methods) => exchanges.push(methods) }, async (stack) => {
    const deployed = (await (await stack.faucet.sendTransaction({ data: code })).wait())?.contractAddress
    await stack.provider.send("anvil_setCode", [L1Fee.oracle, await stack.provider.getCode(String(deployed))])
    oracle = new Contract(L1Fee.oracle, new Interface(abi), stack.faucet)
    await set("setPrice", 20n * gwei)
    for (const wallet of await stack.create(...salts, "asked once")) await stack.mint(wallet, 1_000n)
  })
  const set = async (name: "setPrice" | "setOperator", ...fee: ReadonlyArray<bigint>) => {
    await (await oracle.getFunction(name)(...fee)).wait()
  }
  beforeEach(() => set("setPrice", 20n * gwei))

  const transfer = (salt = "one") => stack.transfer(salt, `0x${"d1".repeat(20)}`)
  const execute = (...of: ReadonlyArray<string>) => stack.execute(of.map(transfer))

  /** Payments of a transaction's ops and its cost on both layers, by the chain's own figures. */
  const account = async (txHash: string, version: Version = "v0.7") => {
    const receipt = await stack.provider.getTransactionReceipt(txHash)
    if (receipt === null) throw new Error("not mined")
    const raw = await stack.provider.send("eth_getRawTransactionByHash", [txHash])
    const paid = receipt.logs.reduce((sum, log) => {
      const event = npmInterface(version, "EntryPoint").parseLog(log)
      return event?.name === "UserOperationEvent" ? sum + BigInt(event.args.actualGasCost) : sum
    }, 0n)
    const data: bigint = await oracle.getFunction("getL1Fee")(raw)
    const l1Fee = data + BigInt(await oracle.getFunction("getOperatorFee")(receipt.gasUsed))
    return { paid, l1Fee, l2Fee: receipt.gasUsed * receipt.gasPrice }
  }

  it.each([
    ["an op alone", "v0.7", 1, 1n],
    ...entryPointVersions.map((version) => ["an op alone", version, 1, 400n * gwei] as const),
    ["a bundle of five", "v0.7", 5, 20n * gwei]
  ] as const)("%s on %s repays its transaction's cost on both layers", async (_, version, count, price) => {
    await set("setPrice", price)
    const entryPoint = Address.unsafe(entryPoints[version])
    const operations = salts.slice(0, count).map(transfer)
    const { status, txHash } = await stack.ask(stack.execute(operations, { entryPoint }))
    expect(status).toBe(1)
    const { l1Fee, l2Fee, paid } = await account(txHash, version)
    expect(paid).toBeGreaterThanOrEqual(l2Fee + l1Fee)
    // A fifth of margin, the base fee's fall by an eighth; the frame of a transaction for each op of a bundle.
    expect(paid - l2Fee).toBeLessThanOrEqual((l1Fee * (count === 1 ? 14n : 22n)) / 10n + l2Fee / 4n)
  })

  it("is repaid to the service's own EOA, which submits no op estimated while the fee was low", async () => {
    const handed = async () => {
      const settings = { signer: undefined }
      const { userOps } = await stack.estimate([transfer()], settings)
      return stack.post(userOps, "signingHash", settings)
    }
    const { txHash } = await stack.ask(await handed())
    const { l1Fee, l2Fee, paid } = await account(txHash)
    expect(l1Fee).toBeGreaterThan(0n)
    expect(paid).toBeGreaterThanOrEqual(l1Fee + l2Fee)
    const cheap = await handed()
    await set("setPrice", 40n * gwei)
    expect(await stack.refused(cheap)).toMatchObject({
      code: "submission_unpaid",
      message: "op does not pay for its submission"
    })
  })

  it("is repaid together with the chain operator's fee, by creations too", async () => {
    await set("setPrice", 0n)
    await set("setOperator", 10n ** 14n, 10n ** 13n)
    await stack.fund(stack.predict("new"), 10n ** 18n)
    const executed = await stack.ask(execute("one"))
    const created = await stack.ask(stack.createWallets(["new"]))
    await set("setOperator", 0n, 0n)
    for (const { status, txHash } of [executed, created]) {
      expect(status).toBe(1)
      const { l2Fee, paid } = await account(txHash)
      const receipt = await stack.provider.getTransactionReceipt(txHash)
      const operatorFee = ((receipt?.gasUsed ?? 0n) * 10n ** 14n) / 10n ** 6n + 10n ** 13n
      expect(paid).toBeGreaterThanOrEqual(l2Fee + operatorFee)
    }
  })

  it("costs no additional round trip", async () => {
    await stack.ask(execute("asked once"))
    exchanges = []
    await stack.ask(execute("asked once"))
    const polls = /^eth_getTransactionReceipt|^eth_getBlockByNumber/
    const own = exchanges.filter((methods) => !methods.every((method) => polls.test(method)))
    expect(own).toHaveLength(4)
    // The op was measured in the first exchange; the second queries the oracle for the measured bytes.
    expect([...(own[1] ?? [])].sort()).toEqual(["eth_call", "eth_call", "eth_call", "eth_getBlockByNumber"])
  })

  it("must be covered by the submitting EOA in addition to the gas: otherwise it sends no transaction", () =>
    stack.living({ profile }, async (life) => {
      await set("setPrice", 0n)
      const { txHash } = await life.runPromise(execute("one"))
      const sent = await stack.provider.getTransaction(txHash)
      const before = await stack.provider.getBalance(stack.signer.address)
      const enough = 2n * (sent?.gasLimit ?? 0n) * (sent?.maxFeePerGas ?? 0n)
      await stack.fund(stack.signer.address, enough)
      try {
        expect((await life.runPromise(execute("one"))).status).toBe(1)
        await stack.fund(stack.signer.address, enough)
        await set("setPrice", 400n * gwei)
        const failure = await life.runPromise(Effect.flip(execute("one")))
        expect(failure).toMatchObject({ code: "insufficient_funds" })
      } finally {
        await stack.fund(stack.signer.address, before)
      }
    }))

  it("is refused above the cost limit of a transaction: a foreign node cannot make a wallet pay it", async () => {
    for (const price of [10n ** 18n, 2n ** 240n]) {
      await set("setPrice", price)
      expect(await stack.refused(execute("one"))).toMatchObject({ code: "fees_above_cap" })
    }
  })

  it("is 422 when no node reports it", async () => {
    const installed = await stack.provider.getCode(L1Fee.oracle)
    await stack.provider.send("anvil_setCode", [L1Fee.oracle, "0x"])
    const failure = await stack.refused(execute("one"))
    await stack.provider.send("anvil_setCode", [L1Fee.oracle, installed])
    expect(failure).toMatchObject({
      code: "node_refused",
      details: [{ message: expect.stringContaining("GasPriceOracle") }]
    })
  })
})
