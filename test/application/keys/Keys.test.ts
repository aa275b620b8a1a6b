import { expect, it } from "vitest"
import * as Keys from "../../../src/application/keys/Keys.js"
import { SignerError } from "../../../src/application/ports/Signers.js"

it("a system key that the operator has not configured is no provider that does not answer", () => {
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
