import * as Either from "effect/Either"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import { versionOf } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Outcome from "../../../src/domain/erc4337/Outcome.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../src/domain/signature/Conditions.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

type Limit = "callGasLimit" | "verificationGasLimit"

describe.each(["v0.6", "v0.7", "v0.8"] as const)("limits of /estimateGas on EntryPoint %s", (version) => {
  let stack: Stack
  let token: Address.Address
  let reverter: Address.Address
  const lines: Array<string> = []
  beforeAll(async () => {
    stack = await startStack({ entryPoint: version })
    token = Address.unsafe(await stack.token.getAddress())
    reverter = Address.unsafe(await stack.reverter.getAddress())
    const [wallet] = await stack.create("figures")
    await stack.mint(String(wallet), 1_000n)
  })
  afterAll(async () => {
    console.log(`estimated limits without a buffer, EntryPoint ${version}\n${lines.join("\n")}`)
    await stack.stop()
  })

  /** What the real EntryPoint makes of the op under these limits, signed by its owner. */
  const succeeds = async (op: UserOperation.UserOperation): Promise<boolean> => {
    const { entryPoint } = stack.settings
    const chainId = BigInt(stack.anvil.chainId)
    const hash = UserOperation.hash(versionOf(entryPoint) ?? version, entryPoint, chainId, op)
    const proof = Hex.unsafe(stack.signer.signingKey.sign(hash).serialized)
    const signed = { ...op, signature: Conditions.encodeSignature(Conditions.none, proof) }
    const [block] = await stack.provider.send("eth_simulateV1", [
      {
        blockStateCalls: [
          {
            calls: [
              {
                from: stack.signer.address,
                to: entryPoint,
                data: UserOperation.handleOps(version, [signed], Address.unsafe(stack.signer.address)),
                gas: "0xf42400"
              }
            ]
          }
        ]
      },
      "latest"
    ])
    const { logs, status } = block.calls[0]
    if (BigInt(status) !== 1n) return false
    const parsed = Outcome.parse(
      entryPoint,
      logs.map((log: { address: string; topics: ReadonlyArray<string>; data: string }, logIndex: number) => ({
        address: Address.unsafe(log.address),
        topics: log.topics.map(Hex.unsafe32),
        data: Hex.unsafe(log.data),
        logIndex
      }))
    )
    return parsed.get(hash)?.success === true
  }

  const minimum = async (op: UserOperation.UserOperation, limit: Limit): Promise<bigint> => {
    let low = 0n
    let high = op[limit]
    while (high - low > 50n) {
      const middle = (low + high) / 2n
      if (await succeeds({ ...op, [limit]: middle })) high = middle
      else low = middle
    }
    return high
  }

  const cases: ReadonlyArray<readonly [string, () => Omit<Operation, "salt" | "walletCustody">]> = [
    [
      "ERC-20 transfer to a new holder",
      () => ({
        to: token,
        funcSignature: "transfer(address,uint256)",
        funcParams: [`0x${"e1".repeat(20)}`, "1"]
      })
    ],
    [
      "approve",
      () => ({ to: token, funcSignature: "approve(address,uint256)", funcParams: [reverter, "1"] })
    ],
    [
      "value to a new account",
      () => ({ to: Address.unsafe(`0x${"e2".repeat(20)}`), funcSignature: "receive()", value: 1n })
    ],
    [
      "a counter",
      () => ({ to: reverter, funcSignature: "bump(bytes32)", funcParams: [`0x${"01".repeat(32)}`] })
    ]
  ]

  it.each(cases)("%s: they suffice, and are at most the bisected minima and 10k", async (name, call) => {
    const operation: Operation = { ...call(), salt: "figures", walletCustody: 1 }
    const estimated = await stack.ask(
      EstimateGas.run(stack.caller(), {
        operations: [operation],
        settings: { ...stack.settings, percentUserOpGasOvershoot: Percent.zero }
      })
    )
    expect(estimated).toMatchObject({ status: 1, error: null })
    const op = Either.getOrThrow(
      UserOperation.decode(version, Hex.unsafe(estimated.userOps[0]?.encodedUserOp ?? ""))
    )
    expect(await succeeds(op)).toBe(true)
    const minima = (await minimum(op, "callGasLimit")) + (await minimum(op, "verificationGasLimit"))
    const limits = op.callGasLimit + op.verificationGasLimit
    const ratio = Number((limits * 1000n) / (minima + 10_000n)) / 1000
    lines.push(`  ${name}: limits ${limits}, minima ${minima}, ratio to minima + 10k: ${ratio}`)
    expect(ratio).toBeLessThanOrEqual(1)
  })

  it("they suffice when a key is used again, too", async () => {
    const operation: Operation = { ...(cases[1]?.[1]() as Operation), salt: "figures", walletCustody: 1 }
    const settings = { ...stack.settings, percentUserOpGasOvershoot: Percent.zero }
    for (let n = 0; n < 3; n += 1) {
      const result = await stack.ask(
        ExecuteOperations.run(stack.caller(), { operations: [operation], settings })
      )
      expect(result.status).toBe(1)
    }
  })
})
