import { concat, getBytes, Wallet } from "ethers"
import { describe, expect, it } from "vitest"
import { versions } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { npmCode, npmInterface } from "./Abis.js"
import { withLimits } from "./Wallets.js"
import { dummyEcdsa, type Op, useWorld } from "./World.js"

const world = useWorld()

describe.each(versions)("the reference SimpleAccount on %s", (version) => {
  it("a SimpleAccount is created and used within the limits of lens and formulas", async () => {
    const owner = Wallet.createRandom()
    const factoryAbi = npmInterface(version, "SimpleAccountFactory")
    const accountAbi = npmInterface(version, "SimpleAccount")
    const factory = await world.deploy(npmCode(version, "SimpleAccountFactory", world.entryPoint(version)))
    const ask = factoryAbi.encodeFunctionData("getAddress", [owner.address, 7])
    const sender = Address.fromWord(await world.provider.call({ to: factory, data: ask }))
    await world.setBalance(sender, 10n ** 18n)
    const create = factoryAbi.encodeFunctionData("createAccount", [owner.address, 7])
    const send = Hex.unsafe(accountAbi.encodeFunctionData("execute", [world.submitter.address, 5n, "0x"]))
    for (const [nonce, initCode] of [
      [0n, Hex.unsafe(concat([factory, create]))],
      [1n, Hex.empty],
      [1n << 64n, Hex.empty]
    ] as const) {
      const op: Op = {
        sender,
        nonce,
        initCode,
        callData: send,
        callGasLimit: 200_000n,
        verificationGasLimit: 600_000n,
        preVerificationGas: 60_000n,
        maxFeePerGas: 3_000_000_000n,
        maxPriorityFeePerGas: 3_000_000_000n,
        paymasterAndData: Hex.empty,
        signature: Hex.unsafe(dummyEcdsa())
      }
      const [measure] = await world.measure(version, [op])
      const limited = withLimits(op, measure, version)
      const hash = await world.userOpHash(version, limited)
      const proof =
        version === "v0.8" ? owner.signingKey.sign(hash).serialized : owner.signMessageSync(getBytes(hash))
      const outcome = await world.submit(version, [{ ...limited, signature: Hex.unsafe(proof) }])
      expect(outcome.success, `nonce ${nonce}`).toBe(true)
    }
  })
})
