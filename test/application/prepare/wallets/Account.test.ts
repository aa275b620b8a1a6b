import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import * as Account from "../../../../src/application/prepare/wallets/Account.js"
import * as Make from "../../../support/journal/Make.js"

describe("an account of a creation", () => {
  const wallet = Make.address(0xaa)
  const problems = (account: Account.Account) =>
    Result.match(Account.parse(account, 2), {
      onFailure: ({ details }) => details.map(({ path }) => path),
      onSuccess: () => []
    })

  it("accepts a true legacyWallet only with a salt", () => {
    expect(problems({ wallet, walletCustody: 0, legacyWallet: true })).toEqual(["accounts[2].legacyWallet"])
    expect(problems({ wallet, walletCustody: 0, legacyWallet: false })).toEqual([])
    expect(problems({ salt: "old", wallet, walletCustody: 1, legacyWallet: true })).toEqual([])
    expect(problems({ walletCustody: 1, legacyWallet: true })).toEqual(["accounts[2].salt"])
  })
})
