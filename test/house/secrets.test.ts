import { HDNodeWallet, Mnemonic } from "ethers"
import { describe, expect, it } from "vitest"
import { devKeys } from "../support/secrets/DevKeys.js"
import * as Guard from "../support/secrets/Guard.js"

describe("the guard over the tests' private keys", () => {
  it("the key guard knows the keys of anvil's accounts", () => {
    const phrase = Mnemonic.fromPhrase("test test test test test test test test test test test junk")
    const keys = devKeys.map((_, index) =>
      HDNodeWallet.fromMnemonic(phrase, `m/44'/60'/0'/0/${index}`).privateKey.slice(2)
    )
    expect(keys).toEqual(devKeys)
  })

  it("the key guard finds a planted one in a log line, in an object and in an answer", async () => {
    const [key = ""] = devKeys
    const silent = () => undefined
    const voice: Guard.Voice = {
      console: { debug: silent, info: silent, log: silent, warn: silent, error: silent },
      fetch: async () => new Response(JSON.stringify({ key: `0x${key.toUpperCase()}` }))
    }
    const guard = Guard.install(voice)
    voice.console.log(`key: 0x${key}`)
    voice.console.warn({ amount: BigInt(`0x${key}`) })
    voice.console.log("nothing")
    await (await voice.fetch("http://127.0.0.1/sign")).text()
    guard.remove()
    voice.console.error(`key: 0x${key}`)
    expect(guard.found()).toEqual(["console.log", "console.warn", "an answer of /"])
  })
})
