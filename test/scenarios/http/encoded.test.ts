import { AbiCoder, Contract, concat, getBytes, TypedDataEncoder, type Wallet } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import {
  anvilKey,
  type Estimate,
  type EstimatedOp,
  elementAt,
  first,
  type TransactionResult
} from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"

const service = perFile()
let wallet: string
beforeAll(async () => {
  wallet = String((await service.create("main"))[0])
  await service.provider.send("anvil_setCode", [taker, "0x00"])
})

const versions = ["v0.6", "v0.7", "v0.8"] as const
type Version = (typeof versions)[number]
const eoa = "0x000000000000000000000000000000000000dEaD"
/** A contract that accepts every call. */
const taker = "0x7A7a7A7a7a7a7a7A7a7a7a7A7a7A7A7A7A7A7a7A"
const coder = AbiCoder.defaultAbiCoder()

const op = (
  to: string,
  funcSignature: string,
  funcParams: ReadonlyArray<unknown> = [],
  rest: object = {}
) => ({
  salt: "main",
  walletCustody: 1,
  to,
  funcSignature,
  funcParams,
  ...rest
})
const mint = (amount: bigint, rest: object = {}) =>
  op(service.info.token, "mint(address,uint256)", [eoa, String(amount)], rest)

const settings = (more: object = {}) => ({ ...service.info.settings, ...more })
const through = (version: Version) => ({ entryPoint: service.info.entryPoints[version] })

const estimate = (operations: ReadonlyArray<unknown>, more: object = {}) =>
  service.ok<Estimate>("/estimateGas", { operations, settings: settings(more) })
const estimateOne = async (operation: unknown, more: object = {}): Promise<EstimatedOp> =>
  first((await estimate([operation], more)).userOps)

const encoded = ({ encodedUserOp, userOpHash }: EstimatedOp, rest: object = {}) => ({
  encodedUserOp,
  userOpHash,
  walletCustody: 1,
  ...rest
})
const execute = (operations: ReadonlyArray<unknown>, more: object = {}) =>
  service.ok<TransactionResult>("/executeEncoded", { operations, settings: settings(more) })
const refused = (status: number, operations: ReadonlyArray<unknown>, more: object = {}) =>
  service.refused(status, "/executeEncoded", { operations, settings: settings(more) })

const received = async (): Promise<bigint> => service.token.balanceOf?.(eoa)
const state = async () => [
  await service.provider.getTransactionCount(service.signer.address),
  await service.provider.getBlockNumber()
]

const tuples = {
  "v0.6":
    "tuple(address sender,uint256 nonce,bytes initCode,bytes callData,uint256 callGasLimit,uint256 verificationGasLimit,uint256 preVerificationGas,uint256 maxFeePerGas,uint256 maxPriorityFeePerGas,bytes paymasterAndData,bytes signature)",
  "v0.7":
    "tuple(address sender,uint256 nonce,bytes initCode,bytes callData,bytes32 accountGasLimits,uint256 preVerificationGas,bytes32 gasFees,bytes paymasterAndData,bytes signature)"
}
const tupleOf = (version: Version) => (version === "v0.6" ? tuples["v0.6"] : tuples["v0.7"])

const decode = (version: Version, text: string) => coder.decode([tupleOf(version)], text)[0]

const limitsOf = (version: Version, text: string) => {
  const struct = decode(version, text)
  if (version === "v0.6")
    return {
      verification: BigInt(struct.verificationGasLimit),
      call: BigInt(struct.callGasLimit),
      pre: BigInt(struct.preVerificationGas)
    }
  const packed = BigInt(struct.accountGasLimits)
  return {
    verification: packed >> 128n,
    call: packed & ((1n << 128n) - 1n),
    pre: BigInt(struct.preVerificationGas)
  }
}

const signingHash = (hash: string, bundler: string): string =>
  TypedDataEncoder.hash(
    { name: "castellan", version: "1" },
    {
      Conditions: [
        { name: "userOpHash", type: "bytes32" },
        { name: "validUntil", type: "uint48" },
        { name: "validAfter", type: "uint48" },
        { name: "bundler", type: "address" }
      ]
    },
    { userOpHash: hash, validUntil: 0, validAfter: 0, bundler }
  )

const ways: ReadonlyArray<readonly [string, (owner: Wallet, op: EstimatedOp) => string | Promise<string>]> = [
  ["userOpHash", (owner, { userOpHash }) => owner.signingKey.sign(userOpHash).serialized],
  ["userOpHash as a personal message", (owner, { userOpHash }) => owner.signMessage(getBytes(userOpHash))],
  ["signingHash", (owner, op) => owner.signingKey.sign(op.signingHash).serialized],
  ["signingHash as a personal message", (owner, op) => owner.signMessage(getBytes(op.signingHash))],
  [
    "signingHash with v 0 or 1",
    (owner, op) => {
      const { r, s, yParity } = owner.signingKey.sign(op.signingHash)
      return concat([r, s, `0x0${yParity}`])
    }
  ]
]

describe.each(versions)("an estimate for EntryPoint %s", (version) => {
  it("names its ops with the EntryPoint's own hash and the signing hash of its submitter", async () => {
    const answer = await estimate([mint(1n), mint(2n)], through(version))
    expect(Object.keys(answer).sort()).toEqual(["error", "gas", "status", "userOps"])
    expect({ error: answer.error, status: answer.status }).toEqual({ error: null, status: 1 })
    const entryPoint = new Contract(
      service.info.entryPoints[version],
      [`function getUserOpHash(${tupleOf(version)} op) view returns (bytes32)`],
      service.provider
    )
    let sum = 0n
    for (const [n, userOp] of answer.userOps.entries()) {
      expect(Object.keys(userOp).sort()).toEqual([
        "aggrIndexes",
        "bundler",
        "encodedUserOp",
        "signingHash",
        "userOpHash"
      ])
      expect(userOp.aggrIndexes).toEqual([n])
      expect(userOp.encodedUserOp.slice(2, 66)).toBe(`${"0".repeat(62)}20`)
      const struct = decode(version, userOp.encodedUserOp)
      expect({ sender: struct.sender, signature: struct.signature, initCode: struct.initCode }).toEqual({
        sender: wallet,
        signature: "0x",
        initCode: "0x"
      })
      expect(await entryPoint.getUserOpHash?.([...struct])).toBe(userOp.userOpHash)
      expect(userOp.bundler).toBe(service.signer.address)
      expect(userOp.signingHash).toBe(signingHash(userOp.userOpHash, userOp.bundler))
      const { call, pre, verification } = limitsOf(version, userOp.encodedUserOp)
      sum += call + pre + verification
    }
    expect(BigInt(answer.gas)).toBe(sum)
  })

  it("goes unchanged through executeEncoded, signed by the service, with no overshoot at all", async () => {
    const before = await received()
    const more = { ...through(version), percentUserOpGasOvershoot: 0 }
    const { userOps } = await estimate([mint(1n), mint(2n), mint(4n)], more)
    const result = await execute(
      userOps.map((each) => encoded(each)),
      through(version)
    )
    expect(result.status).toBe(1)
    expect(result.returnData.map((_, n) => elementAt(result.returnData, n).userOpHash)).toEqual(
      userOps.map(({ userOpHash }) => userOpHash)
    )
    expect((await received()) - before).toBe(7n)
  })
})

describe("an estimate", () => {
  it("without a signer names the service's EOA as submitter", async () => {
    const { signer: _signer, ...rest } = settings()
    const { userOps } = await service.ok<Estimate>("/estimateGas", { operations: [mint(1n)], settings: rest })
    const { address } = await service.ok<{ readonly address: string }>("/getbundleraddress", {})
    const { bundler, signingHash: hash, userOpHash } = first(userOps)
    expect({ bundler, hash }).toEqual({ bundler: address, hash: signingHash(userOpHash, address) })
  })

  it.each(ways)("goes through when its owner signs %s", async (_, sign) => {
    const before = await received()
    const userOp = await estimateOne(mint(3n))
    const result = await execute([encoded(userOp, { signature: await sign(service.signer, userOp) })])
    expect(elementAt(result.returnData, 0)).toMatchObject({
      userOpHash: userOp.userOpHash,
      success: true,
      error: null,
      txHash: result.txHash
    })
    expect((await received()) - before).toBe(3n)
  })

  it("reports its failure, and still lists the good ops", async () => {
    const reverting = op(service.info.reverter, "failWithReason(string)", ["no"])
    const answer = await estimate([mint(1n), reverting, mint(1n)])
    expect(answer.status).toBe(0)
    expect(answer.error).toContain("no")
    expect(answer.userOps.map(({ aggrIndexes }) => aggrIndexes)).toEqual([[0], [2]])
  })

  it.each([["12.3456", 123_456n]])(
    "with an overshoot of %j percent has limits of exactly that much more",
    async (percent, tenThousandths) => {
      const base = limitsOf(
        "v0.7",
        (await estimateOne(mint(1n), { percentUserOpGasOvershoot: 0 })).encodedUserOp
      )
      const more = limitsOf(
        "v0.7",
        (await estimateOne(mint(1n), { percentUserOpGasOvershoot: percent })).encodedUserOp
      )
      const raised = (x: bigint) => (x * (1_000_000n + tenThousandths) + 999_999n) / 1_000_000n
      expect(more.call).toBe(raised(base.call))
      expect(more.verification).toBe(raised(base.verification))
    }
  )

  it("gives twenty concurrent requests twenty different nonces", async () => {
    const ops = await Promise.all(Array.from({ length: 20 }, () => estimateOne(mint(1n))))
    expect(new Set(ops.map(({ encodedUserOp }) => decode("v0.7", encodedUserOp).nonce)).size).toBe(20)
    const answers = await Promise.all(ops.map((each) => execute([encoded(each)])))
    expect(answers.map(({ status }) => status)).toEqual(ops.map(() => 1))
  })

  it.each([
    ["of a wallet that does not exist", { salt: "unborn" }, "wallet not deployed"],
    [
      "of more value than the wallet has",
      { value: String(10n ** 25n), to: eoa, funcSignature: "receive()", funcParams: [] },
      /./
    ]
  ])("%s answers 200 with status 0", async (_, rest, error) => {
    const answer = await estimate([{ ...mint(1n), ...rest }])
    expect({ gas: answer.gas, status: answer.status, userOps: answer.userOps }).toEqual({
      gas: 0,
      status: 0,
      userOps: []
    })
    expect(answer.error).toMatch(error)
  })
})

const hashOf = (text: string): Promise<string> =>
  new Contract(
    service.info.entryPoints["v0.7"],
    [`function getUserOpHash(${tuples["v0.7"]} op) view returns (bytes32)`],
    service.provider
  ).getFunction("getUserOpHash")([...decode("v0.7", text)])
describe("an encoded op", () => {
  it("posted again returns its outcome without another execution", async () => {
    const before = await received()
    const userOp = await estimateOne(mint(5n))
    const [one, other] = await Promise.all([execute([encoded(userOp)]), execute([encoded(userOp)])])
    const after = await state()
    const again = await execute([encoded(userOp)])
    expect([one, other, again].map(({ status, txHash }) => ({ status, txHash }))).toEqual(
      Array.from({ length: 3 }, () => ({ status: 1, txHash: one.txHash }))
    )
    expect(elementAt(again.returnData, 0)).toMatchObject({ success: true, userOpHash: userOp.userOpHash })
    expect(await state()).toEqual(after)
    expect((await received()) - before).toBe(5n)
  })

  it("twice in one request is refused", async () => {
    const userOp = await estimateOne(mint(1n))
    const { details } = await refused(400, [encoded(userOp), encoded(userOp)])
    expect(details[0]?.path).toMatch(/^operations\[1\]/)
  })

  it("with a hash other than its own is refused", async () => {
    const [one, other] = (await estimate([mint(1n), mint(2n)])).userOps
    const { code, details } = await refused(400, [
      { encodedUserOp: one?.encodedUserOp, userOpHash: other?.userOpHash, walletCustody: 1 }
    ])
    expect(code).toBe("hash_mismatch")
    expect(details.map(({ path }) => path)).toEqual(["operations[0].userOpHash"])
  })

  it("for an EntryPoint other than the request's is refused", async () => {
    const userOp = await estimateOne(mint(1n), through("v0.7"))
    for (const version of ["v0.6", "v0.8"] as const) {
      const { details } = await refused(400, [encoded(userOp)], through(version))
      expect(details[0]?.path).toMatch(/^operations\[0\]\.(userOpHash|encodedUserOp)$/)
    }
  })

  it.each([
    ["of a stranger", (op: EstimatedOp) => anvilKey(8).signingKey.sign(op.signingHash).serialized],
    [
      "for another submitter",
      (op: EstimatedOp) => service.signer.signingKey.sign(signingHash(op.userOpHash, eoa)).serialized
    ],
    [
      "with the high s",
      (op: EstimatedOp) => {
        const { r, s, v } = service.signer.signingKey.sign(op.signingHash)
        const n = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
        return concat([r, `0x${(n - BigInt(s)).toString(16).padStart(64, "0")}`, v === 27 ? "0x1c" : "0x1b"])
      }
    ],
    [
      "twice",
      (op: EstimatedOp) => {
        const { serialized } = service.signer.signingKey.sign(op.signingHash)
        return concat([serialized, serialized])
      }
    ],
    ["that is huge", () => `0x${"11".repeat(200_000)}`]
  ])("with a signature %s is refused before anything is sent", async (_, sign) => {
    const userOp = await estimateOne(mint(1n))
    const before = await state()
    const answer = await service.ask<{ readonly code: string; readonly error: string }>("/executeEncoded", {
      operations: [encoded(userOp, { signature: sign(userOp) })],
      settings: settings()
    })
    expect([answer.status, answer.body.code]).toEqual([422, "invalid_signature"])
    expect(answer.text.length).toBeLessThan(2_000)
    expect(await state()).toEqual(before)
  })

  it("with a bad signature returns the expected hash, and the others go", async () => {
    const [bad, good] = (await estimate([mint(1n), mint(2n)])).userOps
    if (bad === undefined || good === undefined) throw new Error("two ops were expected")
    const signature = anvilKey(8).signingKey.sign(bad.signingHash).serialized
    const alone = await refused(422, [encoded(bad, { signature })])
    expect(JSON.stringify(alone)).toContain(bad.signingHash)
    const result = await execute([encoded(bad, { signature }), encoded(good)])
    expect(result.status).toBe(4)
    expect(elementAt(result.returnData, 0)).toMatchObject({ success: false, txHash: null })
    expect(elementAt(result.returnData, 0).error).toContain("invalid signature: signature 0 is by no owner")
    expect(elementAt(result.returnData, 0).error).toContain(bad.signingHash)
    expect(elementAt(result.returnData, 1).error).toBeNull()
  })

  it("goes only with the owner's signature when the wallet has a foreign owner", async () => {
    const [address = ""] = await service.create("sold")
    const owner = anvilKey(9)
    await service.ok<TransactionResult>("/execute", {
      operations: [
        op(
          address,
          "setConfig((uint8,uint8,address[],(bytes32,bytes32)[]))",
          [["1", "1", [owner.address], []]],
          {
            salt: "sold"
          }
        )
      ],
      settings: settings()
    })
    const before = await received()
    const userOp = await estimateOne(mint(6n, { salt: "sold" }))
    const { code, error } = await refused(422, [encoded(userOp)])
    expect({ code, error }).toEqual({ code: "threshold_not_met", error: "threshold not met: have 0 of 1" })
    const signature = owner.signingKey.sign(userOp.signingHash).serialized
    expect((await execute([encoded(userOp, { signature })])).status).toBe(1)
    expect((await received()) - before).toBe(6n)
  })

  it("with a nonce used elsewhere is refused", async () => {
    const userOp = await estimateOne(mint(1n), { percentUserOpGasOvershoot: 0 })
    expect((await execute([encoded(userOp)])).status).toBe(1)
    const struct = decode("v0.7", userOp.encodedUserOp)
    const changed = coder.encode(
      [tuples["v0.7"]],
      [Object.values({ ...struct.toObject(), preVerificationGas: struct.preVerificationGas + 1n })]
    )
    const userOpHash = await hashOf(changed)
    const { code } = await refused(422, [{ encodedUserOp: changed, userOpHash, walletCustody: 1 }])
    expect(code).toBe("invalid_nonce")
  })

  it.each([2, 5])("claimed to be of custody %i is not this wallet's", async (walletCustody) => {
    const userOp = await estimateOne(mint(1n))
    const { code } = await refused(400, [encoded(userOp, { walletCustody })])
    expect(code).toBe("custody_mismatch")
  })

  it.each([
    ["nothing", "0x"],
    ["a length of 2^256 - 1", `0x${"00".repeat(31)}20${"ff".repeat(600)}`]
  ])("is refused when it is %s", async (_, encodedUserOp) => {
    const { details } = await refused(400, [
      { encodedUserOp, userOpHash: `0x${"11".repeat(32)}`, walletCustody: 1 }
    ])
    expect(details.map(({ path }) => path)).toEqual(["operations[0].encodedUserOp"])
  })

  it("is left out with the reason when it reverts on execution", async () => {
    const burn = op(service.info.token, "transfer(address,uint256)", [eoa, "10"])
    const fill = op(service.info.token, "mint(address,uint256)", [wallet, "10"])
    const [filling, one, other] = (await estimate([fill, burn, mint(1n)])).userOps
    if (filling === undefined || one === undefined || other === undefined)
      throw new Error("three ops were expected")
    const result = await execute([encoded(one), encoded(other)])
    expect(result.status).toBe(4)
    expect(elementAt(result.returnData, 0)).toMatchObject({ success: false, txHash: null })
    expect(elementAt(result.returnData, 0).error).toContain("ERC20InsufficientBalance")
    expect(elementAt(result.returnData, 1)).toMatchObject({ success: true, error: null })
    expect((await execute([encoded(filling), encoded(one)])).status).toBe(1)
  })
})

it("256 ops of one wallet are estimated and executed, and no other request waits for them", async () => {
  const operations = Array.from({ length: 256 }, () => mint(1n))
  const settled: Array<string> = []
  const long = estimate(operations).finally(() => settled.push("long"))
  await Promise.all(
    Array.from({ length: 5 }, () => service.ok("/predict", { accounts: [], settings: settings() }))
  ).finally(() => settled.push("short"))
  const { status, userOps } = await long
  expect({ ops: userOps.length, status }).toEqual({ ops: 256, status: 1 })
  expect(settled).toEqual(["short", "long"])
  const before = await received()
  const result = await execute(userOps.map((each) => encoded(each)))
  expect(result.status).toBe(1)
  expect((await received()) - before).toBe(256n)
})
