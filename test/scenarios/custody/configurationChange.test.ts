import { concat, id, Wallet } from "ethers"
import { describe, expect, it } from "vitest"
import * as TransactSigner from "../../../src/application/endpoints/operations/TransactSigner.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { type Address, keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { at } from "../../support/suite/Chain.js"
import { assertion, configOf, ecdsa, indexIn } from "../../support/suite/Keys.js"
import { type Config, mixedProof } from "../../support/suite/Layouts.js"
import { configurationOf } from "../../support/suite/Ops.js"
import { use } from "../../support/Use.js"

/** Signatures collected under one configuration of a wallet, and their use under the next. */

const [own, spare, alice] = [keyOf(1), keyOf(6), new Wallet(id("alice"))]
const ether = 10n ** 18n

const stack = use(startStack)

const configType = "(uint8,uint8,address[],(bytes32,bytes32)[])"
const parametersOf = ({ custody, owners, passkeys, threshold }: Config) => [
  [String(custody), String(threshold), owners, passkeys.map(({ x, y }) => [x, y])]
]
const setConfig = (wallet: Address.Address, config: Config) => ({
  wallet,
  walletCustody: 0 as const,
  to: wallet,
  funcSignature: `setConfig(${configType})`,
  funcParams: parametersOf(config)
})
const pay = (wallet: string, to: Address.Address) => ({
  wallet,
  walletCustody: 0 as const,
  to,
  funcSignature: "receive()",
  funcParams: [],
  value: 5n * ether
})
const nonces = () =>
  Promise.all([own, keyOf(2)].map(({ address }) => stack.provider.getTransactionCount(address)))

describe("signatures that were collected before", () => {
  const phone = Authenticator.make()
  const together = { cosigners: [Journey.second] }

  /** Refused for the configuration, without a transaction or a change of balance. */
  const refused = async (posted: Parameters<Stack["refused"]>[0], to: string) => {
    const before = await nonces()
    expect(await stack.refused(posted)).toMatchObject({
      code: "configuration_changed",
      message: expect.stringMatching(/names configuration 1, in force is 2; estimate the operation again$/)
    })
    expect(await nonces()).toEqual(before)
    expect(await stack.provider.getBalance(to)).toBe(0n)
  }

  it("one signature of a multisig of 2 does not pay 5 ETH once one would do, bound or not", async () => {
    const journey = Journey.make(stack, "v0.7")
    const owners = [own, spare, alice]
    const wallet = await journey.created({
      salt: "attack",
      walletCustody: 3,
      signers: owners.map(({ address }) => address),
      threshold: "2"
    })
    await stack.fund(wallet, 10n * ether)
    const to = Journey.recipient()
    const [op, other] = [await journey.estimated(pay(wallet, to)), await journey.estimated(pay(wallet, to))]
    const posts = () => [
      journey.executeEncoded(op, ecdsa(op.userOpHash, alice)),
      journey.executeEncoded(other, ecdsa(other.signingHash, alice))
    ]
    for (const post of posts()) expect((await stack.refused(post)).code).toBe("threshold_not_met")
    const change = journey.execute(setConfig(wallet, configOf(3, owners, [], 1)), together)
    expect((await stack.ask(change)).status).toBe(1)
    for (const post of posts()) await refused(post, to)
    const fresh = await journey.estimated(pay(wallet, to))
    const answer = await stack.ask(journey.executeEncoded(fresh, ecdsa(fresh.signingHash, alice)))
    expect(answer.status).toBe(1)
    expect(await stack.provider.getBalance(to)).toBe(5n * ether)
  })

  it("a passkey, and an owner with a passkey, do not pay once they would suffice", async () => {
    const journey = Journey.make(stack, "v0.7")
    const config = configOf(4, [own, spare], [phone.passkey], 3)
    const wallet = await journey.created({
      salt: "mix",
      walletCustody: 4,
      signers: [own.address, spare.address],
      passkeyPubKey: [phone.spki.toString("base64")],
      threshold: "2"
    })
    await stack.fund(wallet, 20n * ether)
    const to = Journey.recipient()
    const hashed = await journey.hashed(pay(wallet, to))
    const single = () => journey.executePasskey(hashed, phone.get(hashed.signingHash))
    expect((await stack.refused(single())).code).toBe("threshold_not_met")
    const change = (threshold: number) => setConfig(wallet, { ...config, threshold })
    expect((await stack.ask(journey.execute(change(1), together))).status).toBe(1)
    await refused(single(), to)
    const again = await journey.hashed(pay(wallet, to))
    expect((await stack.ask(journey.executePasskey(again, phone.get(again.signingHash)))).status).toBe(1)

    expect((await stack.ask(journey.execute(change(3)))).status).toBe(1)
    const op = await journey.estimated(pay(wallet, Journey.recipient()))
    const mixed = (hash: string) =>
      mixedProof(ecdsa(hash, own), [
        assertion(hash, phone.passkey, { index: indexIn(config, phone.passkey) })
      ])
    const both = () => journey.executeEncoded(op, mixed(op.signingHash))
    expect((await stack.refused(both())).code).toBe("threshold_not_met")
    const all = await journey.estimated(change(2))
    const proof = mixedProof(ecdsa(all.signingHash, own, spare), [assertion(all.signingHash, phone.passkey)])
    expect((await stack.ask(journey.executeEncoded(all, proof))).status).toBe(1)
    expect((await stack.refused(both())).code).toBe("configuration_changed")
    const fresh = await journey.estimated(pay(wallet, Journey.recipient()))
    expect((await stack.ask(journey.executeEncoded(fresh, mixed(fresh.signingHash)))).status).toBe(1)
  })

  it("a recovery invalidates earlier signatures", async () => {
    const journey = Journey.make(stack, "v0.7")
    const owners = [own, alice]
    const wallet = await journey.created({
      salt: "recovery",
      walletCustody: 3,
      signers: owners.map(({ address }) => address),
      threshold: "1"
    })
    await stack.fund(wallet, 10n * ether)
    const guard = {
      wallet,
      walletCustody: 0 as const,
      to: wallet,
      funcSignature: "setRecovery(address,uint48)",
      funcParams: [spare.address, String(48 * 3_600)]
    }
    expect((await stack.ask(journey.execute(guard))).status).toBe(1)
    const to = Journey.recipient()
    const op = await journey.estimated(pay(wallet, to))
    const recovering = (name: string) =>
      TransactSigner.run(stack.caller(), {
        to: wallet,
        funcSignature: `${name}(${configType})`,
        funcParams: parametersOf(configOf(3, owners, [], 1)),
        settings: { rpc: stack.settings.rpc, signer: Journey.second }
      })
    expect((await stack.ask(recovering("startRecovery"))).status).toBe(1)
    await stack.provider.send("evm_increaseTime", [48 * 3_600 + 60])
    await stack.provider.send("evm_mine", [])
    expect((await stack.ask(recovering("finishRecovery"))).status).toBe(1)
    await refused(journey.executeEncoded(op, ecdsa(op.userOpHash, alice)), to)
    expect((await stack.ask(journey.execute(pay(wallet, to)))).status).toBe(1)
  })

  it("an op landed before a rotation keeps its outcome when posted again", async () => {
    const journey = Journey.make(stack, "v0.7")
    const wallet = await journey.created({ salt: `landed`, walletCustody: 1 })
    const op = await journey.estimated(journey.transfer(wallet, Journey.recipient()))
    const post = () => stack.ask(journey.executeEncoded(op, ecdsa(op.signingHash, own)))
    const first = await post()
    expect(first.status).toBe(1)
    expect((await stack.ask(journey.execute(setConfig(wallet, configOf(1, [spare]))))).status).toBe(1)
    expect(await post()).toMatchObject({ status: 1, txHash: first.txHash })
  })

  it("every operation still works after several rotations, in parallel too", async () => {
    const journey = Journey.make(stack, "v0.7")
    const account = { walletCustody: 2 as const, passkeyPubKey: [phone.spki.toString("base64")] }
    const wallet = await journey.created({ salt: `goes on`, ...account })
    const config = configOf(2, [own], [phone.passkey])
    for (const round of [1n, 2n, 3n]) {
      expect((await stack.ask(journey.execute(setConfig(wallet, config)))).status).toBe(1)
      const { configNonce } = await configurationOf(at("Wallet", wallet, stack))
      expect(configNonce).toBe(round + 1n)
      const places = Array.from({ length: 4 }, () => Journey.recipient())
      const answers = await Promise.all(
        places.map((to) => stack.ask(journey.execute(journey.transfer(wallet, to))))
      )
      for (const [index, to] of places.entries()) {
        const answer = answers[index]
        if (answer !== undefined) await journey.transferred(answer, wallet, to)
      }
      const [encoded, hashed] = [Journey.recipient(), Journey.recipient()]
      const op = await journey.estimated(journey.transfer(wallet, encoded))
      const posted = await stack.ask(journey.executeEncoded(op, concat([ecdsa(op.userOpHash, own)])))
      await journey.transferred(posted, wallet, encoded)
      const passed = await journey.hashed(journey.transfer(wallet, hashed))
      const answer = await stack.ask(journey.executePasskey(passed, phone.get(passed.signingHash)))
      await journey.transferred(answer, wallet, hashed)
    }
  })
})
