import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { type HDNodeWallet, hashMessage, Wallet } from "ethers"
import * as Client from "../../../src/client/Client.js"
import { first } from "../../support/http/DevService.js"
import { documented } from "../../support/http/Examples.js"
import { aloneInFile } from "../../support/http/SharedService.js"
import * as UniversalValidator from "../../support/suite/UniversalValidator.js"

interface Signed {
  readonly status: number
  readonly wallet: string
  readonly hash: string
  readonly signature: string
  readonly validUntil: number
}

const service = aloneInFile()

/** The program of docs/messages.md. */
const shown = async () => {
  const [, code = ""] = /```js\n([\s\S]*?)```/.exec(readFileSync("docs/messages.md", "utf8")) ?? []
  return (await import(`data:text/javascript,${encodeURIComponent(code)}`)).collect
}

const accepted = ({ hash, signature, wallet }: Signed) =>
  UniversalValidator.isValid(service.provider, wallet, hash, signature)

describe("/signMessage", () => {
  it("answers as the reference shows, with what the universal validator accepts", async () => {
    const wallet = first(await service.create("messages"))
    const answer = await documented<Signed>(service, "/signMessage", {
      wallet,
      walletCustody: 1,
      message: "hello",
      settings: { rpc: service.info.rpc, signer: service.info.settings.signer }
    })
    expect(answer).toMatchObject({ status: 1, wallet, hash: hashMessage("hello"), validUntil: 0 })
    expect(await accepted(answer)).toBe(true)
  })

  it("collects the signatures of others by the client, as docs/messages.md shows", async () => {
    const { apiKeys, baseUrl, rpc, settings } = service.info
    const client = Client.make({ baseUrl, apiKey: apiKeys.enterprise, retries: 0 })
    const owners: ReadonlyArray<HDNodeWallet> = [Wallet.createRandom(), Wallet.createRandom()]
    const account = {
      salt: "of strangers",
      walletCustody: 3,
      signers: [settings.signer, ...owners.map(({ address }) => address)],
      threshold: "3"
    }
    const left = [...owners]
    const collect = await shown()
    const answer: Signed = await collect(
      client,
      { account, message: "hello", settings: { rpc, signer: settings.signer } },
      (hash: string) => ({ signature: left.shift()?.signingKey.sign(hash).serialized })
    )
    expect(left).toEqual([])
    expect(await accepted(answer)).toBe(true)
  })

  it.each([
    ["an unknown member", { message: "m", messages: ["m"] }, "unknown_field"],
    ["an unknown member of a proof", { message: "m", proofs: [{ x: 1 }] }, "unknown_field"],
    ["typed data in a string", { typedData: "m" }, "invalid_request"]
  ])("refuses %s", async (_, content, code) => {
    const named = { walletCustody: 1, salt: "messages", settings: { rpc: service.info.rpc } }
    const answer = await service.ask<{ readonly code: string }>("/signMessage", { ...named, ...content })
    expect([answer.status, answer.body.code]).toEqual([400, code])
  })
})
