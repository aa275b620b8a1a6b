import { AbiCoder, concat, getCreate2Address, hashMessage, Interface, keccak256 } from "ethers"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { revertOf, send, senderCreators, validateCall, validationData } from "../../support/suite/Calls.js"
import { at, type Chain, create, devKey, startChain } from "../../support/suite/Chain.js"
import { personalDigest } from "../../support/suite/Erc7739.js"
import { configOf, ecdsa, highS, newPasskey, parityV } from "../../support/suite/Keys.js"
import {
  type Config,
  configHash,
  create2Salt,
  saltHash,
  unbound,
  walletInitCode
} from "../../support/suite/Layouts.js"
import {
  authorize,
  configurationOf,
  createWallet,
  creationOp,
  execute,
  factoryAbi,
  handleOps,
  hashOf,
  initCodeOf,
  newOp,
  pack,
  predict,
  refusal,
  signOp,
  walletAbi
} from "../../support/suite/Ops.js"

let chain: Chain
beforeAll(async () => {
  chain = await startChain()
})
afterAll(() => chain.stop())

const owner = devKey(20)
const other = devKey(21)
const mine = configOf(1, [owner])

/** The factory's answer to createWallet in a transaction of the bundler, or of `from`: "none", or the error. */
const attempt = (
  salt: string,
  config: Config,
  grant: { readonly deadline: number; readonly legacy: boolean; readonly authorization: string },
  options: { readonly factory?: string; readonly from?: string } = {}
) => {
  const initCode = initCodeOf(options.factory ?? chain.suite.factory, salt, config, grant)
  return revertOf(
    chain,
    {
      from: options.from ?? chain.bundler.address,
      to: initCode.slice(0, 42),
      data: `0x${initCode.slice(42)}`
    },
    factoryAbi
  )
}

describe.each(entryPointVersions)("on EntryPoint %s", (version) => {
  test("a wallet stands at its predicted address with its configuration", async () => {
    const custodies = [
      mine,
      configOf(2, [owner], [newPasskey()]),
      configOf(3, [owner, other, devKey(22)], [], 2),
      configOf(4, [owner, other], [newPasskey(), newPasskey()], 3),
      configOf(5, [], [newPasskey()])
    ]
    const ops = await Promise.all(
      custodies.map((config) => creationOp(chain, version, `stands ${version}`, config))
    )
    for (const op of ops) await chain.fund(op.sender)
    const { receipt, outcomes } = await handleOps(chain, version, ops)
    expect(outcomes.map((outcome) => outcome.success)).toEqual([true, true, true, true, true])
    const created = receipt.logs
      .filter((log) => log.address === chain.suite.factory)
      .map((log) => factoryAbi.parseLog(log)?.args.toArray())
    for (const [i, config] of custodies.entries()) {
      const salt = create2Salt(saltHash(`stands ${version}`), config.custody, false)
      const initCode = walletInitCode(artifact("WalletProxy").bytecode, chain.suite.beacon)
      const address = getCreate2Address(chain.suite.factory, salt, keccak256(initCode))
      expect(ops[i]?.sender).toBe(address)
      expect(created[i]).toEqual([address, salt, configHash(config)])
      expect(await chain.provider.getCode(address)).toBe(await chain.provider.call({ data: initCode }))
      const wallet = at("Wallet", address, chain)
      expect(await configurationOf(wallet)).toEqual({ config, configNonce: 1n })
      expect(await wallet.getFunction("validator").staticCall()).toBe(chain.suite.validator)
    }
  })

  test("a wallet refuses its creation authority after creation, even over operations that call nothing", async () => {
    const wallet = await createWallet(chain, version, `one-shot ${version}`, mine)
    const sender = await wallet.getAddress()
    await chain.fund(sender, 10n ** 19n)
    const drain = newOp(sender, { nonce: 1n, preVerificationGas: 10n ** 9n })
    const signed = await signOp(chain, version, drain, (hash) => ecdsa(hash, chain.deployer))
    expect(await refusal(chain, version, [signed])).toBe("AA24 signature error")
  })

  test("a creation authority is spent by the creation, within the same transaction too", async () => {
    const creation = await creationOp(chain, version, `spent ${version}`, mine)
    await chain.fund(creation.sender)
    const second = newOp(creation.sender, { nonce: 1n })
    const signed = await signOp(chain, version, second, (hash) => ecdsa(hash, chain.deployer))
    expect(await refusal(chain, version, [creation])).toBeUndefined()
    expect(await refusal(chain, version, [creation, signed])).toBe("AA24 signature error")
  })

  test("a creation authority signs no call", async () => {
    const { sender, initCode } = await creationOp(chain, version, `no call ${version}`, mine)
    await chain.fund(sender)
    const op = newOp(sender, { initCode, callData: execute(chain.stranger.address, "0x", 1n) })
    const byDeployer = await signOp(chain, version, op, (hash) => ecdsa(hash, chain.deployer))
    expect(await refusal(chain, version, [byDeployer])).toBe("AA24 signature error")
    const byOwner = await signOp(chain, version, op, (hash) => ecdsa(hash, owner))
    expect(await refusal(chain, version, [byOwner])).toBeUndefined()
  })

  test("a creation operation is signed by the deployer, whoever owns the wallet", async () => {
    const creation = await creationOp(chain, version, `by deployer ${version}`, mine)
    await chain.fund(creation.sender)
    const byOwner = await signOp(chain, version, creation, (hash) => ecdsa(hash, owner))
    expect(await refusal(chain, version, [byOwner])).toBe("AA24 signature error")
  })

  test("a second creation of a wallet is refused and takes its bundle with it", async () => {
    const wallet = await createWallet(chain, version, `twice ${version}`, mine)
    const again = await creationOp(chain, version, `twice ${version}`, mine, unbound, { nonce: 1n })
    const innocent = await creationOp(chain, version, `innocent ${version}`, mine)
    await chain.fund(innocent.sender)
    expect(again.sender).toBe(await wallet.getAddress())
    expect(await refusal(chain, version, [innocent, again])).toBe("AA10 sender already constructed")
  })

  test("a wallet that cannot pay is not created", async () => {
    const op = await creationOp(chain, version, `poor ${version}`, mine)
    expect(await refusal(chain, version, [op])).toBe("AA21 didn't pay prefund")
  })

  test("an expired authorisation creates nothing", async () => {
    const salt = `expired ${version}`
    const sender = await predict(chain, salt, 1)
    await chain.fund(sender)
    const grant = await authorize(chain, salt, mine, { deadline: (await chain.now()) - 1 })
    const op = newOp(sender, { initCode: initCodeOf(chain.suite.factory, salt, mine, grant) })
    const signed = await signOp(chain, version, op, (hash) => ecdsa(hash, chain.deployer))
    expect(await refusal(chain, version, [signed])).toBe("AA13 initCode failed or OOG")
  })

  test("the implementation itself validates nothing and executes nothing", async () => {
    const to = chain.suite.implementation
    const op = newOp(to)
    const hash = await hashOf(chain, version, op)
    const signed = await signOp(chain, version, op, (digest) => ecdsa(digest, owner))
    expect(await validationData(chain, version, signed, { hash })).toBe(1n)
    const from = chain.stranger.address
    const unauthorized = `AccountUnauthorized(${from})`
    expect(await revertOf(chain, { from, to, data: validateCall(version, signed, hash) }, walletAbi)).toBe(
      unauthorized
    )
    expect(await revertOf(chain, { from, to, data: execute(from) }, walletAbi)).toBe(unauthorized)
  })
})

describe("the factory", () => {
  test("deploys for the submitter that the authorisation names, and for no other", async () => {
    const bound = await authorize(chain, "callers", mine)
    expect(await attempt("callers", mine, bound)).toBe("none")
    const others = [
      chain.stranger.address,
      chain.deployer.address,
      ...Object.values(entryPoints),
      ...Object.values(senderCreators)
    ]
    for (const from of others)
      expect(await attempt("callers", mine, bound, { from })).toBe("InvalidAuthorization()")
  })

  test("deploys for anybody when the authorisation names nobody, and neither form is made of the other", async () => {
    const open = await authorize(chain, "open", mine, { bundler: unbound.bundler })
    for (const from of [chain.stranger.address, senderCreators["v0.7"], chain.bundler.address])
      expect(await attempt("open", mine, open, { from })).toBe("none")
    const bound = await authorize(chain, "open", mine)
    const turned = [
      `${bound.authorization}01`,
      open.authorization.slice(0, -2),
      `${open.authorization.slice(0, -2)}00`,
      `${open.authorization.slice(0, -2)}02`,
      `${open.authorization}01`
    ]
    for (const authorization of turned)
      for (const from of [chain.bundler.address, chain.stranger.address])
        expect(await attempt("open", mine, { ...open, authorization }, { from })).toBe(
          "InvalidAuthorization()"
        )
  })

  test("reads tx.origin for a named submitter only", async () => {
    const origins = async (grant: Awaited<ReturnType<typeof authorize>>): Promise<number> => {
      const initCode = initCodeOf(chain.suite.factory, "traced", mine, grant)
      const { failed, structLogs } = await chain.provider.send("debug_traceCall", [
        { from: chain.bundler.address, to: chain.suite.factory, data: `0x${initCode.slice(42)}` },
        "latest",
        {}
      ])
      expect(failed).toBe(false)
      return structLogs.filter(({ op }: { readonly op: string }) => op === "ORIGIN").length
    }
    expect(await origins(await authorize(chain, "traced", mine))).toBe(1)
    expect(await origins(await authorize(chain, "traced", mine, { bundler: unbound.bundler }))).toBe(0)
  })

  test("lets a wallet take note of the deployer behind a SenderCreator, and of nobody for a direct caller", async () => {
    const version = "v0.7"
    const many = await create("Multicall", [], chain.stranger)
    const grant = await authorize(chain, "noted", mine)
    const sender = await predict(chain, "noted", 1)
    await chain.fund(sender)
    const initCode = initCodeOf(chain.suite.factory, "noted", mine, grant)
    // The deployer's signature over an op of the wallet that stands already, in the same transaction.
    const op = await signOp(chain, version, newOp(sender), (hash) => ecdsa(hash, chain.deployer))
    const creator = new Interface(["function createSender(bytes initCode) returns (address)"])
    const bundle = {
      target: entryPoints[version],
      allowFailure: false,
      callData: chain
        .entryPoint(version)
        .interface.encodeFunctionData("handleOps", [[pack(version, op)], chain.bundler.address])
    }
    const both = (target: string, callData: string) =>
      revertOf(
        chain,
        {
          from: chain.bundler.address,
          to: String(many.target),
          data: many.interface.encodeFunctionData("aggregate3", [
            [{ target, allowFailure: false, callData }, bundle]
          ])
        },
        many.interface
      )
    const behind = creator.encodeFunctionData("createSender", [initCode])
    expect(await both(senderCreators[version], behind)).toBe("none")
    expect(await both(chain.suite.factory, `0x${initCode.slice(42)}`)).toBe("CallFailed(1)")
  })

  test("serves a verifier of ERC-6492: a wallet signs before it stands, with an unbound authorisation", async () => {
    const many = await create("Multicall", [], chain.stranger)
    const address = await predict(chain, "counterfactual", 1)
    const hash = hashMessage("pay 12 to the miller")
    const grant = await authorize(chain, "counterfactual", mine, { bundler: unbound.bundler })
    const call = `0x${initCodeOf(chain.suite.factory, "counterfactual", mine, grant).slice(42)}`
    const erc1271 = ecdsa(personalDigest(chain, hash, address), owner)
    const magic = "6492".repeat(16)
    const coder = AbiCoder.defaultAbiCoder()
    const wrap = (inner: string) =>
      concat([coder.encode(["address", "bytes", "bytes"], [chain.suite.factory, call, inner]), `0x${magic}`])
    /** As ERC-6492 has it: unwraps, deploys unless there is code, asks by ERC-1271; from any EOA, in one eth_call. */
    const verify = async (signer: string, digest: string, signature: string): Promise<boolean> => {
      if (!signature.endsWith(magic)) throw new Error("not a signature of ERC-6492")
      const [target, callData, inner] = coder.decode(["address", "bytes", "bytes"], signature.slice(0, -64))
      const deployed = (await chain.provider.getCode(signer)) !== "0x"
      const question = walletAbi.encodeFunctionData("isValidSignature", [digest, inner])
      const results: ReadonlyArray<{ success: boolean; returnData: string }> = await many
        .connect(chain.stranger)
        .getFunction("aggregate3")
        .staticCall([
          ...(deployed ? [] : [{ target, callData, allowFailure: false }]),
          { target: signer, callData: question, allowFailure: true }
        ])
      const last = results[results.length - 1]
      return last?.success === true && last.returnData.startsWith("0x1626ba7e")
    }
    expect(await verify(address, hash, wrap(erc1271))).toBe(true)
    expect(await verify(address, hashMessage("pay 13"), wrap(erc1271))).toBe(false)
    const wrong = ecdsa(personalDigest(chain, hash, address), other)
    expect(await verify(address, hash, wrap(wrong))).toBe(false)
    expect(await chain.provider.getCode(address)).toBe("0x")
    // And once it stands: deployed by a stranger, with the authorised configuration.
    const sent = await chain.stranger.sendTransaction({ to: chain.suite.factory, data: call })
    await sent.wait()
    expect(await configurationOf(at("Wallet", address, chain))).toEqual({ config: mine, configNonce: 1n })
    expect(await verify(address, hash, wrap(erc1271))).toBe(true)
    // The deployer signs no operation for it.
    await chain.fund(address)
    const late = await signOp(chain, "v0.7", newOp(address), (digest) => ecdsa(digest, chain.deployer))
    expect(await refusal(chain, "v0.7", [late])).toBe("AA24 signature error")
  })

  test("accepts an authorisation for its own arguments only", async () => {
    const grant = await authorize(chain, "stolen", mine)
    const bad = "InvalidAuthorization()"
    expect(await attempt("stolen", mine, grant)).toBe("none")
    expect(await attempt("another salt", mine, grant)).toBe(bad)
    expect(await attempt("stolen", configOf(1, [other]), grant)).toBe(bad)
    expect(await attempt("stolen", configOf(3, [owner]), grant)).toBe(bad)
    expect(await attempt("stolen", mine, { ...grant, legacy: true })).toBe(bad)
    expect(await attempt("stolen", mine, { ...grant, deadline: grant.deadline + 1 })).toBe(bad)
  })

  test("accepts no authorisation for another factory or chain", async () => {
    const twin = await create(
      "WalletFactory",
      [chain.suite.beacon, chain.deployer.address, chain.factoryOwner.address, ...Object.values(entryPoints)],
      chain.stranger
    )
    const factory = await twin.getAddress()
    const grant = await authorize(chain, "elsewhere", mine)
    expect(await attempt("elsewhere", mine, grant, { factory })).toBe("InvalidAuthorization()")
    expect(
      await attempt("elsewhere", mine, await authorize(chain, "elsewhere", mine, { factory }), { factory })
    ).toBe("none")
    const foreign = await authorize(chain, "elsewhere", mine, { chainId: 1n })
    expect(await attempt("elsewhere", mine, foreign)).toBe("InvalidAuthorization()")
  })

  test("accepts no other key and no other form of the deployer's signature", async () => {
    const grant = await authorize(chain, "forms", mine)
    const forms = [
      (await authorize(chain, "forms", mine, { by: chain.stranger })).authorization,
      highS(grant.authorization),
      parityV(grant.authorization),
      grant.authorization.slice(0, -2),
      `${grant.authorization}00`,
      `${grant.authorization}${"00".repeat(100)}`,
      "0x",
      `0x${"00".repeat(65)}`
    ]
    for (const authorization of forms)
      expect(await attempt("forms", mine, { ...grant, authorization })).toBe("InvalidAuthorization()")
  })

  test("accepts an authorisation from now until its deadline, at most an hour ahead", async () => {
    const now = await chain.now()
    for (const deadline of [now - 1, now + 3700, 2 ** 48 - 1])
      expect(await attempt("deadline", mine, await authorize(chain, "deadline", mine, { deadline }))).toBe(
        `InvalidDeadline(${deadline})`
      )
    expect(
      await attempt("deadline", mine, await authorize(chain, "deadline", mine, { deadline: now + 3500 }))
    ).toBe("none")
  })

  test("creates no wallet of another custody than its address says", async () => {
    const config = configOf(3, [owner])
    const grant = await authorize(chain, "custody", { ...config, custody: 1 })
    const data = factoryAbi.encodeFunctionData("createWallet", [
      saltHash("custody"),
      1,
      false,
      config,
      grant.deadline,
      grant.authorization
    ])
    const from = chain.bundler.address
    expect(await revertOf(chain, { from, to: chain.suite.factory, data }, factoryAbi)).toBe(
      "CustodyMismatch(1,3)"
    )
  })

  test("leaves the custody out of a legacy address", async () => {
    const initCodeHash = keccak256(walletInitCode(artifact("WalletProxy").bytecode, chain.suite.beacon))
    expect(await predict(chain, "old", 3, true)).toBe(
      getCreate2Address(chain.suite.factory, saltHash("old"), initCodeHash)
    )
    const grant = await authorize(chain, "old", mine, { legacy: true })
    const sender = await predict(chain, "old", 1, true)
    await chain.fund(sender)
    const op = newOp(sender, { initCode: initCodeOf(chain.suite.factory, "old", mine, grant) })
    await handleOps(chain, "v0.7", [await signOp(chain, "v0.7", op, (hash) => ecdsa(hash, chain.deployer))])
    expect(await configurationOf(at("Wallet", sender, chain))).toEqual({ config: mine, configNonce: 1n })
  })

  test("returns an existing wallet of the same configuration and refuses another one", async () => {
    const wallet = await createWallet(chain, "v0.7", "exists", mine)
    const grant = await authorize(chain, "exists", mine, { deadline: 1 })
    expect(await attempt("exists", mine, grant)).toBe("none")
    const address = await wallet.getAddress()
    const wanted = configOf(1, [other])
    expect(await attempt("exists", wanted, await authorize(chain, "exists", wanted))).toBe(
      `WalletExists(${address},${configHash(mine)})`
    )
    const rotation = execute(address, walletAbi.encodeFunctionData("setConfig", [wanted]))
    const op = newOp(address, { nonce: 1n, callData: rotation })
    await handleOps(chain, "v0.7", [await signOp(chain, "v0.7", op, (hash) => ecdsa(hash, owner))])
    expect(await attempt("exists", wanted, grant)).toBe("none")
    expect(await attempt("exists", mine, grant)).toBe(`WalletExists(${address},${configHash(wanted)})`)
  })

  test.each(entryPointVersions)("gives whoever copies an authorisation nothing: %s", async (version) => {
    const creation = await creationOp(chain, version, `copied ${version}`, mine)
    await chain.fund(creation.sender)
    const creator = new Interface(["function createSender(bytes initCode) returns (address)"])
    const sent = await chain.stranger.sendTransaction({
      to: senderCreators[version],
      data: creator.encodeFunctionData("createSender", [creation.initCode]),
      gasLimit: 1_000_000n
    })
    await sent.wait().catch(() => null)
    expect(await chain.provider.getCode(creation.sender)).toBe("0x")
    expect(await refusal(chain, version, [creation], chain.stranger)).toBe("AA13 initCode failed or OOG")
    expect((await handleOps(chain, version, [creation])).outcomes).toMatchObject([{ success: true }])
  })

  test("gives whoever takes an unbound authorisation nothing but the authorised wallet", async () => {
    const grant = await authorize(chain, "taken", mine, { bundler: unbound.bundler })
    const initCode = initCodeOf(chain.suite.factory, "taken", mine, grant)
    const op = newOp(await predict(chain, "taken", 1), { initCode })
    const creation = await signOp(chain, "v0.7", op, (hash) => ecdsa(hash, chain.deployer))
    await chain.fund(creation.sender)
    const open = new Interface(["function createSender(bytes initCode) returns (address)"])
    const data = open.encodeFunctionData("createSender", [creation.initCode])
    const sent = await chain.stranger.sendTransaction({
      to: senderCreators["v0.7"],
      data,
      gasLimit: 1_000_000n
    })
    await sent.wait()
    expect((await configurationOf(at("Wallet", creation.sender, chain))).config).toEqual(mine)
    expect(await refusal(chain, "v0.7", [creation])).toBe("AA10 sender already constructed")
    const late = await signOp(chain, "v0.7", newOp(creation.sender), (hash) => ecdsa(hash, chain.deployer))
    expect(await refusal(chain, "v0.7", [late])).toBe("AA24 signature error")
  })

  test("has its deployer replaced by its owner alone, which voids what the previous one authorised", async () => {
    const factory = await create(
      "WalletFactory",
      [chain.suite.beacon, chain.deployer.address, chain.factoryOwner.address, ...Object.values(entryPoints)],
      chain.stranger
    )
    const address = await factory.getAddress()
    const change = factoryAbi.encodeFunctionData("setDeployer", [other.address])
    for (const from of [chain.stranger.address, chain.deployer.address])
      expect(await revertOf(chain, { from, to: address, data: change }, factoryAbi)).toBe(
        `OwnableUnauthorizedAccount(${from})`
      )
    const zero = factoryAbi.encodeFunctionData("setDeployer", [`0x${"00".repeat(20)}`])
    expect(
      await revertOf(chain, { from: chain.factoryOwner.address, to: address, data: zero }, factoryAbi)
    ).toBe("InvalidDeployer()")
    const before = await authorize(chain, "rotated", mine, { factory: address })
    expect(await attempt("rotated", mine, before, { factory: address })).toBe("none")
    const receipt = await send(chain.factoryOwner, factory, "setDeployer", other.address)
    expect(receipt?.logs.map((log) => factoryAbi.parseLog(log)?.args.toArray())).toEqual([
      [chain.deployer.address, other.address]
    ])
    expect(await factory.getFunction("deployer").staticCall()).toBe(other.address)
    expect(await attempt("rotated", mine, before, { factory: address })).toBe("InvalidAuthorization()")
    const after = await authorize(chain, "rotated", mine, { factory: address, by: other })
    expect(await attempt("rotated", mine, after, { factory: address })).toBe("none")
  })
})

describe("initialize", () => {
  test("works once per wallet and never on the implementation", async () => {
    const wallet = await createWallet(chain, "v0.7", "once", mine)
    const data = walletAbi.encodeFunctionData("initialize", [configOf(1, [other]), other.address])
    for (const to of [await wallet.getAddress(), chain.suite.implementation])
      for (const from of [chain.stranger.address, chain.suite.factory, to])
        expect(await revertOf(chain, { from, to, data }, walletAbi)).toBe("AlreadyInitialized()")
  })
})
