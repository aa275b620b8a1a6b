import { expect, it } from "vitest"
import * as Keys from "../../../src/application/keys/Keys.js"
import { SignerError } from "../../../src/application/ports/Signers.js"

it("an unconfigured system key differs from a provider that does not reply", () => {
  const error = new SignerError({
    reason: "notConfigured",
    message: "no system key serviceEoa is configured"
  })
  expect(Keys.refusal("settings.signer")(error)).toMatchObject({
    code: "signer_unavailable",
    details: [
      {
        path: "settings.signer",
        message:
          "the operator has configured no system key for this: ask the operator, or name a signer of the account where the request takes one"
      }
    ]
  })
})
