import {
  AbiCoder,
  type Contract,
  concat,
  hashMessage,
  id,
  keccak256,
  TypedDataEncoder,
  toBeHex
} from "ethers"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { send } from "../../support/suite/Calls.js"
import { type Chain, devKey, startChain } from "../../support/suite/Chain.js"
import { assertion, configOf, ecdsa, indexIn, newPasskey, passkeyProof } from "../../support/suite/Keys.js"
import { type Config, mixedProof, unbound } from "../../support/suite/Layouts.js"
import {
  createWallet,
  epochOf,
  execute,
  handleOps,
  newOp,
  nonceOf,
  type Op,
  refusal,
  signOp,
  walletAbi
} from "../../support/suite/Ops.js"

/**
 * A signature is of the configuration that it was made under: the top 64 bits of an operation's nonce name it, and the
 * version of the domain of messages.
 */

let chain: Chain
beforeAll(async () => {
  chain = await startChain()
})
afterAll(() => chain.stop())

const ether = 10n ** 18n
const [a, b, c] = [devKey(20), devKey(21), devKey(22)] as const
const [p, q] = [newPasskey(), newPasskey()]
const keys = { owners: [a, b], passkeys: [p, q] }

interface Attack {
  readonly name: string
  readonly before: Config
  readonly after: Config
  /** The part that was collected, and all that the first configuration asks for. */
  readonly part: (hash: string) => string
  readonly whole: (hash: string) => string
}

const union = configOf(4, keys.owners, keys.passkeys, 2)
const attacks: ReadonlyArray<Attack> = [
  {
    name: "one signature of a multisig of 2",
    before: configOf(3, [a, b, c], [], 2),
    after: configOf(3, [a, b, c], [], 1),
    part: (hash) => ecdsa(hash, a),
    whole: (hash) => ecdsa(hash, a, b)
  },
  {
    name: "one passkey of a mix of 2",
    before: union,
    after: { ...union, threshold: 1 },
    part: (hash) => passkeyProof(hash, p, { index: indexIn(union, p) }),
    whole: (hash) => mixedProof(ecdsa(hash, a), [assertion(hash, p, { index: indexIn(union, p) })])
  },
  {
    name: "an owner and a passkey of a mix of 3",
    before: { ...union, threshold: 3 },
    after: union,
    part: (hash) => mixedProof(ecdsa(hash, a), [assertion(hash, p, { index: indexIn(union, p) })]),
    whole: (hash) => mixedProof(ecdsa(hash, a, b), [assertion(hash, p, { index: indexIn(union, p) })])
  }
]

const rotation = (sender: string, config: Config) =>
  execute(sender, walletAbi.encodeFunctionData("setConfig", [config]))

describe.each(entryPointVersions)("on EntryPoint %s", (version) => {
  const opOf = async (wallet: Contract, callData: string, key = 0n, epoch?: bigint): Promise<Op> => {
    const sender = await wallet.getAddress()
    return newOp(sender, {
      nonce: await nonceOf(chain, version, sender, key, epoch),
      callData,
      callGasLimit: 1_000_000n
    })
  }
  const lands = async (op: Op) =>
    expect((await handleOps(chain, version, [op])).outcomes).toMatchObject([{ success: true }])

  test.each(attacks)("$name is worth nothing once fewer would do", async (attack) => {
    const { after, before, name, part, whole } = attack
    const wallet = await createWallet(chain, version, `${name} ${version}`, before)
    const sender = await wallet.getAddress()
    await chain.fund(sender, 10n * ether)
    const pay = execute(chain.stranger.address, "0x", 5n * ether)
    const bound = {
      validUntil: (await chain.now()) + 86_400,
      validAfter: 0,
      bundler: chain.bundler.address
    }
    // Keys of their own: the rotation consumes the nonces of neither.
    const collected = [
      await signOp(chain, version, await opOf(wallet, pay, 7n), part, unbound),
      await signOp(chain, version, await opOf(wallet, pay, 8n), part, bound)
    ]
    for (const op of collected) expect(await refusal(chain, version, [op])).toBe("AA24 signature error")
    await lands(await signOp(chain, version, await opOf(wallet, rotation(sender, after)), whole))
    for (const op of collected) expect(await refusal(chain, version, [op])).toBe("AA24 signature error")
    // The same part suffices over a nonce of the configuration in force.
    await lands(await signOp(chain, version, await opOf(wallet, pay, 7n), part))
  })

  test("what was signed completely under an earlier configuration, or for a later one, does not count", async () => {
    const wallet = await createWallet(chain, version, `complete ${version}`, configOf(1, [a]))
    const sender = await wallet.getAddress()
    const by = (hash: string) => ecdsa(hash, a)
    const sign = async (epoch: bigint) =>
      signOp(chain, version, await opOf(wallet, execute(chain.stranger.address), 3n, epoch), by)
    const [first, second, third] = [await sign(0n), await sign(1n), await sign(2n)]
    const accepted = async () =>
      Promise.all(
        [first, second, third].map(async (op) => (await refusal(chain, version, [op])) ?? "accepted")
      )
    const [wrong, right] = ["AA24 signature error", "accepted"]
    expect(await accepted()).toEqual([right, wrong, wrong])
    await lands(await signOp(chain, version, await opOf(wallet, rotation(sender, configOf(1, [a]))), by))
    expect(await accepted()).toEqual([wrong, right, wrong])
    await lands(await signOp(chain, version, await opOf(wallet, rotation(sender, configOf(1, [a]))), by))
    expect(await accepted()).toEqual([wrong, wrong, right])
    const beyond = await sign(2n ** 64n - 1n)
    expect(await refusal(chain, version, [beyond])).toBe(wrong)
  })

  test("a recovery ends what was signed before it", async () => {
    const config = configOf(3, [a, b], [], 2)
    const wallet = await createWallet(chain, version, `recovered ${version}`, config)
    const sender = await wallet.getAddress()
    const pay = execute(chain.stranger.address, "0x", 1n)
    const part = (hash: string) => ecdsa(hash, a)
    const collected = await signOp(chain, version, await opOf(wallet, pay, 7n), part)
    const guard = walletAbi.encodeFunctionData("setRecovery", [chain.stranger.address, 48 * 3_600])
    await lands(
      await signOp(chain, version, await opOf(wallet, execute(sender, guard)), (hash) => ecdsa(hash, a, b))
    )
    expect(await epochOf(chain, sender)).toBe(0n)
    const after = configOf(3, [a, b], [], 1)
    await send(chain.stranger, wallet, "startRecovery", after)
    await chain.provider.send("evm_increaseTime", [48 * 3_600 + 1])
    await chain.provider.send("evm_mine", [])
    await send(chain.stranger, wallet, "finishRecovery", after)
    expect(await epochOf(chain, sender)).toBe(1n)
    expect(await refusal(chain, version, [collected])).toBe("AA24 signature error")
    await lands(await signOp(chain, version, await opOf(wallet, pay, 7n), part))
  })
})

describe("getNonce", () => {
  test("reports the nonce that the next operation needs, whatever the rotations", async () => {
    const wallet = await createWallet(chain, "v0.7", "reports", configOf(1, [a]))
    const sender = await wallet.getAddress()
    const view = (signature: string, ...args: ReadonlyArray<unknown>): Promise<bigint> =>
      wallet.getFunction(signature).staticCall(...args)
    expect(await view("getNonce()")).toBe(1n)
    expect(await view("getNonce(uint192)", 5n)).toBe(5n << 64n)
    const op = newOp(sender, { nonce: 1n, callData: rotation(sender, configOf(1, [b])) })
    await handleOps(chain, "v0.7", [await signOp(chain, "v0.7", op, (hash) => ecdsa(hash, a))])
    expect(await view("getNonce()")).toBe(1n << 192n)
    expect(await view("getNonce(uint192)", 5n)).toBe((1n << 192n) | (5n << 64n))
    expect(await view("getNonce(uint192)", (9n << 128n) | 5n)).toBe((1n << 192n) | (5n << 64n))
  })
})

describe("a message (ERC-1271)", () => {
  const [valid, invalid] = ["0x1626ba7e", "0xffffffff"]
  const app = { name: "Exchange", version: "3", chainId: 31337, verifyingContract: `0x${"ee".repeat(20)}` }
  const order = { Order: [{ name: "amount", type: "uint256" }] }
  const orderType = "Order(uint256 amount)"

  /** As tools do it: the domain is what the wallet reports by ERC-5267. */
  const domainOf = async (wallet: Contract) => {
    const said = await wallet.getFunction("eip712Domain").staticCall()
    expect([said.fields, said.salt, said.extensions.length]).toEqual(["0x0f", `0x${"00".repeat(32)}`, 0])
    const { chainId, name, verifyingContract, version } = said
    return { name, version, chainId, verifyingContract }
  }
  type Domain = Awaited<ReturnType<typeof domainOf>>
  const encode = (types: ReadonlyArray<string>, values: ReadonlyArray<unknown>) =>
    keccak256(AbiCoder.defaultAbiCoder().encode(types, values))
  const personal = (domain: Domain, hash: string) =>
    keccak256(
      concat([
        "0x1901",
        TypedDataEncoder.hashDomain(domain),
        encode(["bytes32", "bytes32"], [id("PersonalSign(bytes prefixed)"), hash])
      ])
    )
  const typed = ({ chainId, name, verifyingContract, version }: Domain) => {
    const separator = TypedDataEncoder.hashDomain(app)
    const contents = TypedDataEncoder.from(order).hash({ amount: 12n })
    const typeHash = id(
      `TypedDataSign(Order contents,string name,string version,uint256 chainId,address verifyingContract,bytes32 salt)${orderType}`
    )
    const nested = encode(
      ["bytes32", "bytes32", "bytes32", "bytes32", "uint256", "address", "bytes32"],
      [typeHash, contents, id(name), id(version), chainId, verifyingContract, `0x${"00".repeat(32)}`]
    )
    const description = `0x${Buffer.from(orderType).toString("hex")}`
    return {
      hash: TypedDataEncoder.hash(app, order, { amount: 12n }),
      digest: keccak256(concat(["0x1901", separator, nested])),
      trailer: concat([separator, contents, description, toBeHex(orderType.length, 2)])
    }
  }

  test("signed by too few stays worthless when fewer suffice, and nothing outlives a rotation", async () => {
    const wallet = await createWallet(chain, "v0.7", "messages", configOf(3, [a, b], [], 2))
    const sender = await wallet.getAddress()
    const ask = (hash: string, signature: string): Promise<string> =>
      wallet.getFunction("isValidSignature").staticCall(hash, signature)
    const message = hashMessage("pay 12 to the miller")
    const domains: Array<Domain> = []
    for (const threshold of [2, 1, 1]) {
      const domain = await domainOf(wallet)
      for (const past of domains) {
        expect(await ask(message, ecdsa(personal(past, message), a, b))).toBe(invalid)
        expect(await ask(message, ecdsa(personal(past, message), a))).toBe(invalid)
        const { digest, hash, trailer } = typed(past)
        expect(await ask(hash, concat([ecdsa(digest, a, b), trailer]))).toBe(invalid)
      }
      const signers = [a, b].slice(0, threshold)
      expect(await ask(message, ecdsa(personal(domain, message), ...signers))).toBe(valid)
      const { digest, hash, trailer } = typed(domain)
      expect(await ask(hash, concat([ecdsa(digest, ...signers), trailer]))).toBe(valid)
      if (threshold === 2) expect(await ask(message, ecdsa(personal(domain, message), a))).toBe(invalid)
      domains.push(domain)
      const op = newOp(sender, {
        nonce: await nonceOf(chain, "v0.7", sender),
        callData: rotation(sender, configOf(3, [a, b], [], 1)),
        callGasLimit: 1_000_000n
      })
      await handleOps(chain, "v0.7", [await signOp(chain, "v0.7", op, (of) => ecdsa(of, ...signers))])
    }
    expect(domains.map(({ version }) => version)).toEqual(["1", "1.1", "1.2"])
  })
})
