import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type BundlerClient, BundlerRpc, BundlerRpcError } from "../../application/ports/chain/BundlerRpc.js"

/** These bundlers by their URLs, and no others: for tests, and for embedders whose profiles name none. */
export const layer = (clients: Readonly<Record<string, BundlerClient>> = {}): Layer.Layer<BundlerRpc> =>
  Layer.succeed(BundlerRpc, {
    connect: (url) => {
      const client = clients[url]
      return client === undefined
        ? Effect.fail(
            new BundlerRpcError({ reason: "invalidUrl", origin: "", message: "no bundler has this URL" })
          )
        : Effect.succeed(client)
    }
  })
