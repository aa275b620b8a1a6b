import { createRequire } from "node:module"
import { describe, expect, it } from "@effect/vitest"
import { AbiCoder, Interface } from "ethers"
import * as fc from "fast-check"
import * as Aggregation from "../../../src/domain/erc4337/Aggregation.js"
import { versions } from "../../../src/domain/erc4337/EntryPoint.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import { forAll, hex, op } from "../generators.js"

const require = createRequire(import.meta.url)

describe.each(versions)("calls to an aggregator on %s", (version) => {
  const { abi } = require(`@account-abstraction/contracts-${version}/artifacts/IAggregator.json`)
  const aggregator = new Interface(abi)
  const tupleOf = (one: UserOperation.UserOperation) =>
    AbiCoder.defaultAbiCoder().decode(
      [UserOperation.structOf(version)],
      UserOperation.encode(version, one)
    )[0]

  it("a call to an aggregator matches its authors' interface", () => {
    forAll([fc.array(op(version), { minLength: 1, maxLength: 3 }), hex()], (ops, signature) => {
      const [first] = ops
      const tuples = ops.map(tupleOf)
      if (first !== undefined)
        expect(Aggregation.validateOne(version, first)).toBe(
          aggregator.encodeFunctionData("validateUserOpSignature", [tuples[0]])
        )
      expect(Aggregation.aggregate(version, ops)).toBe(
        aggregator.encodeFunctionData("aggregateSignatures", [tuples])
      )
      expect(Aggregation.validateAll(version, ops, signature)).toBe(
        aggregator.encodeFunctionData("validateSignatures", [tuples, signature])
      )
    })
  })
})
