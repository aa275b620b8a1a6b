import { describe, expect, it } from "@effect/vitest"
import { getCreateAddress } from "ethers"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import { address, forAll } from "../generators.js"

describe("EntryPoint", () => {
  it("EntryPoint knows the version only of canonical EntryPoints", () => {
    for (const version of EntryPoint.versions)
      expect(EntryPoint.versionOf(EntryPoint.canonical[version])).toBe(version)
    forAll([address], (other) => EntryPoint.versionOf(other) === undefined)
  })

  it("anyVersion lists all versions, oldest first", () => {
    expect(EntryPoint.anyVersion).toBe("v0.6, v0.7 or v0.8")
  })

  it("EntryPoint derives the SenderCreator as the first CREATE of the EntryPoint", () => {
    forAll([address], (entryPoint) => {
      expect(EntryPoint.senderCreator(entryPoint)).toBe(getCreateAddress({ from: entryPoint, nonce: 1 }))
    })
  })
})
