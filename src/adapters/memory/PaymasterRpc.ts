import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  type PaymasterClient,
  PaymasterRpc,
  PaymasterRpcError
} from "../../application/ports/chain/PaymasterRpc.js"

/** These services by their URLs, and no others: for tests, and for embedders whose profiles name none. */
export const layer = (clients: Readonly<Record<string, PaymasterClient>> = {}): Layer.Layer<PaymasterRpc> =>
  Layer.succeed(PaymasterRpc, {
    connect: (url) => {
      const client = clients[url]
      return client === undefined
        ? Effect.fail(
            new PaymasterRpcError({ reason: "invalidUrl", origin: "", message: "no service has this URL" })
          )
        : Effect.succeed(client)
    }
  })
