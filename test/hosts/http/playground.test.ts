import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Playground from "../../../src/hosts/http/playground/Playground.js"
import { envelope, send, start } from "../../support/http/Service.js"

const get = (url: string, path: string, method = "GET") => send(url, path, { method })

describe("the playground", () => {
  it.live("the playground is public, under a policy that allows only its own files", () =>
    Effect.gen(function* () {
      const { url } = yield* start({ front: { pages: Playground.pages } })
      const page = yield* get(url, "/playground")
      expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"])
      const policy = page.headers.get("content-security-policy") ?? ""
      expect(policy).toContain("default-src 'none'")
      expect(policy).not.toMatch(/unsafe|https?:|\*/)
      expect(page.headers.get("x-content-type-options")).toBe("nosniff")

      const files = [...page.text.matchAll(/(?:src|href)="(\/playground\/[^"]+)"/g)].map(
        ([, path]) => path ?? ""
      )
      expect(new Set(files)).toEqual(
        new Set(["/playground/style.css", "/playground/script.js", "/playground/passkeys.js"])
      )
      for (const file of files) {
        const answer = yield* get(url, file)
        expect(answer.status).toBe(200)
        expect(answer.headers.get("content-type")).toMatch(/^text\/(css|javascript); charset=utf-8$/)
      }
    }).pipe(Effect.scoped)
  )

  it.live("the playground has no inline code and no foreign resources", () =>
    Effect.sync(() => {
      const [page, passkeys, script, style] = [...Playground.pages.values()].map(({ body }) =>
        new TextDecoder().decode(body)
      )
      expect(page).not.toMatch(/ style=| on[a-z]+=|<style|<script[^>]*>[^<]/)
      expect(page).not.toMatch(/(?:src|href)="(?!\/|#|data:)/)
      expect(style).not.toMatch(/url\(|@import/)
      for (const module of [script, passkeys]) expect(module).not.toMatch(/innerHTML|eval|https:/)
      expect(String(script).match(/import .*/g)).toEqual(['import { register, sign } from "./passkeys.js"'])
      expect(passkeys).not.toMatch(/import /)
    })
  )

  it.live("the playground allows only GET and HEAD, and is absent unless enabled", () =>
    Effect.gen(function* () {
      const { url } = yield* start({ front: { pages: Playground.pages } })
      const posted = yield* get(url, "/playground", "POST")
      expect([posted.status, envelope(posted).code]).toEqual([405, "method_not_allowed"])
      expect(posted.headers.get("allow")).toBe("GET, HEAD")
      const head = yield* get(url, "/playground", "HEAD")
      expect([head.status, head.text]).toEqual([200, ""])
      expect((yield* get(url, "/playground/other")).status).toBe(404)

      const production = yield* start()
      for (const path of Playground.pages.keys()) expect((yield* get(production.url, path)).status).toBe(404)
    }).pipe(Effect.scoped)
  )
})
