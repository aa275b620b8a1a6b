import { describe, expect, it } from "vitest"
import * as TransactSigner from "../../../src/application/endpoints/operations/TransactSigner.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { type Address, keyOf, startStack } from "../../support/stack/Stack.js"
import { configOf } from "../../support/suite/Keys.js"
import type { Config } from "../../support/suite/Layouts.js"
import { use } from "../../support/Use.js"

const [own, spare] = [keyOf(1), keyOf(6)]
const base64 = ({ spki }: Authenticator.Authenticator) => spki.toString("base64")

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

describe("a phone that is lost", () => {
  it("the tablet replaces the lost phone: the new phone signs, the lost one cannot", async () => {
    const journey = Journey.make(stack, "v0.7")
    const [lost, tablet, found] = [Authenticator.make(), Authenticator.make(), Authenticator.make()]
    const account = {
      salt: `lost phone`,
      walletCustody: 5 as const,
      passkeyPubKey: [lost, tablet].map(base64)
    }
    const wallet = await journey.created(account)
    const config = configOf(5, [], [tablet.passkey, found.passkey])

    const change = await journey.hashed(setConfig(wallet, config))
    const changed = await stack.ask(journey.executePasskey(change, tablet.get(change.signingHash)))
    expect(changed.status).toBe(1)
    expect(await journey.configurationOf(wallet)).toEqual(config)

    const stolen = await journey.hashed(journey.transfer(wallet, Journey.recipient()))
    const failure = await stack.refused(journey.executePasskey(stolen, lost.get(stolen.signingHash)))
    expect(failure.code).toBe("invalid_signature")
    const to = Journey.recipient()
    const op = await journey.hashed(journey.transfer(wallet, to))
    const answer = await stack.ask(journey.executePasskey(op, found.get(op.signingHash)))
    await journey.transferred(answer, wallet, to)

    expect((await stack.refused(journey.create([account]))).message).toBe("account already exists")
    const now = { ...account, passkeyPubKey: [found, tablet].map(base64) }
    expect((await stack.ask(journey.create([now]))).status).toBe(2)
  })
})

describe("a new version of an HSM key", () => {
  it("a new key version takes over a wallet by an op of the old version", async () => {
    const journey = Journey.make(stack, "v0.7")
    const wallet = await journey.created({ salt: "new version", walletCustody: 1 })
    const answer = await stack.ask(journey.execute(setConfig(wallet, configOf(1, [spare]))))
    expect(answer.status).toBe(1)
    const old = await stack.refused(journey.execute(journey.transfer(wallet, Journey.recipient())))
    expect(old.message).toBe("threshold not met: have 0 of 1")
    const to = Journey.recipient()
    const signed = journey.execute(journey.transfer(wallet, to), { signer: Journey.second })
    await journey.transferred(await stack.ask(signed), wallet, to)
  })

  it("the same key version as before keeps working: the next op uses the current configuration", async () => {
    const journey = Journey.make(stack, "v0.7")
    const wallet = await journey.created({ salt: "same version", walletCustody: 1 })
    for (let n = 0; n < 2; n += 1) {
      expect((await stack.ask(journey.execute(setConfig(wallet, configOf(1, [own]))))).status).toBe(1)
      const to = Journey.recipient()
      await journey.transferred(await stack.ask(journey.execute(journey.transfer(wallet, to))), wallet, to)
    }
  })
})

describe("signers and threshold", () => {
  it("the old threshold changes signers and threshold; later ops need the new threshold", async () => {
    const journey = Journey.make(stack, "v0.7")
    const wallet = await journey.created({
      salt: "threshold",
      walletCustody: 3,
      signers: [own.address, spare.address],
      threshold: "1"
    })
    const config = configOf(3, [own, spare], [], 2)
    expect((await stack.ask(journey.execute(setConfig(wallet, config)))).status).toBe(1)
    const alone = journey.execute(setConfig(wallet, configOf(3, [own], [], 1)))
    expect((await stack.refused(alone)).message).toBe("threshold not met: have 1 of 2")
    const together = journey.execute(setConfig(wallet, configOf(3, [own], [], 1)), {
      cosigners: [Journey.second]
    })
    expect((await stack.ask(together)).status).toBe(1)
  })

  it.each([
    ["of another custody", configOf(5, [], [Authenticator.make().passkey])],
    ["with an unreachable threshold", configOf(3, [own], [], 2)],
    ["with one signer twice", configOf(3, [own, own], [], 2)],
    ["with nobody", configOf(3, [], [], 1)]
  ])("do not become a configuration %s: the operation fails and is not sent", async (name, config) => {
    const journey = Journey.make(stack, "v0.7")
    const wallet = await journey.created({
      salt: `invalid ${name}`,
      walletCustody: 3,
      signers: [own.address],
      threshold: "1"
    })
    const failure = await stack.refused(journey.execute(setConfig(wallet, config)))
    expect(failure).toMatchObject({ _tag: "Unprocessable", code: "execution_failed" })
    expect(await journey.configurationOf(wallet)).toEqual(configOf(3, [own]))
  })

  it("only the wallet itself can change signers and threshold", async () => {
    const journey = Journey.make(stack, "v0.7")
    const wallet = await journey.created({ salt: "by itself", walletCustody: 1 })
    const failure = await stack.refused(
      TransactSigner.run(stack.caller(), {
        to: wallet,
        funcSignature: `setConfig(${configType})`,
        funcParams: parametersOf(configOf(1, [spare])),
        settings: { rpc: journey.settings.rpc, signer: journey.settings.signer }
      })
    )
    expect(failure._tag).toBe("Unprocessable")
  })
})

describe("recovery", () => {
  const delay = 48 * 3600

  /** The account's second signer acts as the recovery address. */
  const recovering = (wallet: Address.Address, name: string, config: Config) =>
    TransactSigner.run(stack.caller(), {
      to: wallet,
      funcSignature: `${name}(${configType})`,
      funcParams: parametersOf(config),
      settings: { rpc: stack.settings.rpc, signer: Journey.second }
    })
  const later = async (seconds: number) => {
    await stack.provider.send("evm_increaseTime", [seconds])
    await stack.provider.send("evm_mine", [])
  }
  const guarded = async (salt: string) => {
    const journey = Journey.make(stack, "v0.7")
    const phone = Authenticator.make()
    const wallet = await journey.created({ salt, walletCustody: 5, passkeyPubKey: [base64(phone)] })
    const call = {
      wallet,
      walletCustody: 5 as const,
      to: wallet,
      funcSignature: "setRecovery(address,uint48)",
      funcParams: [spare.address, String(delay)]
    }
    const op = await journey.hashed(call)
    await stack.ask(journey.executePasskey(op, phone.get(op.signingHash)))
    return { journey, phone, wallet }
  }

  it("recovery gives a wallet with a lost passkey to a new one after 48 hours, not earlier", async () => {
    const { journey, wallet } = await guarded("recovered")
    const found = Authenticator.make()
    const config = configOf(5, [], [found.passkey])
    expect((await stack.ask(recovering(wallet, "startRecovery", config))).status).toBe(1)
    await later(delay - 60)
    expect((await stack.refused(recovering(wallet, "finishRecovery", config)))._tag).toBe("Unprocessable")
    await later(120)
    expect((await stack.ask(recovering(wallet, "finishRecovery", config))).status).toBe(1)
    const to = Journey.recipient()
    const op = await journey.hashed(journey.transfer(wallet, to))
    const answer = await stack.ask(journey.executePasskey(op, found.get(op.signingHash)))
    await journey.transferred(answer, wallet, to)
  })

  it("the wallet can cancel a recovery", async () => {
    const { journey, phone, wallet } = await guarded("not lost at all")
    const config = configOf(5, [], [Authenticator.make().passkey])
    expect((await stack.ask(recovering(wallet, "startRecovery", config))).status).toBe(1)
    const cancel = { wallet, walletCustody: 0 as const, to: wallet, funcSignature: "cancelRecovery()" }
    const op = await journey.hashed(cancel)
    const cancelled = journey.executePasskey(op, phone.get(op.signingHash))
    expect((await stack.ask(cancelled)).status).toBe(1)
    await later(delay + 60)
    expect((await stack.refused(recovering(wallet, "finishRecovery", config)))._tag).toBe("Unprocessable")
    expect(await journey.configurationOf(wallet)).toEqual(configOf(5, [], [phone.passkey]))
  })
})
