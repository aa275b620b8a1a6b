import { describe, expect, it } from "@effect/vitest"
import { recoverAddress } from "ethers"
import * as EstimationDeployer from "../../../src/domain/wallet/EstimationDeployer.js"
import { bytes32, forAll } from "../generators.js"

describe("the deployer of simulations", () => {
  it("the deployer of simulations signs by the key of its address", () => {
    forAll([bytes32], (digest) => {
      expect(recoverAddress(digest, EstimationDeployer.sign(digest))).toBe(EstimationDeployer.address)
    })
  })

  it("the deployer of simulations is in slot 0 of a factory", () => {
    expect(Object.entries(EstimationDeployer.factoryStorage)).toEqual([
      [`0x${"00".repeat(32)}`, `0x${"00".repeat(12)}${EstimationDeployer.address.slice(2).toLowerCase()}`]
    ])
  })
})
