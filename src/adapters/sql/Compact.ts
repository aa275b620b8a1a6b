import { inflateRawSync } from "node:zlib"

/**
 * Columns of hex and JSON that earlier versions deflated. They are read as long as a database holds them, but not
 * rewritten: a start must not rewrite a whole history while other processes wait, and sealed columns need the key.
 */

/** Text; on SQLite, earlier versions wrote bytes, too. */
export type Column = string | Uint8Array

/** zlib's dictionary: likely common parts of these columns. Never change it: stored text refers to positions in it. */
const dictionary = inflateRawSync(
  Buffer.from(
    [
      "1VhLb9s4EP4rAU9dQGj5FEnf0tju9tIN0BZ7KHIYksNUWFkyJCpNEOS/LyS/H9lt67RBeLLIGT7m+zjz0fSW8miptMJwDbk1UjgLHig1",
      "0ggK1FtJl00zzXVAzlGhDcZBpBjA51HoAFRwQ52lkkudKzRcR3pSk/SZGzvNndMX3diJ+2fyxR59dQNOgz8/0d880+lRupwFrmP+sgn8",
      "s9uXEixV1jv3svPPc7dT+SsZOxEBTw0Fyvyps1AG9J7Uc2wgFXXVktGXewLe112VFh8tlImMCMnINyhLTBddm+pwR0Zs1UNGhN6SjKR6",
      "9esGyg77D5KR2FX+Y3FdQeqavg/m86a+wVcQQoNtm3VFlbjK/zhimhqo2ojNY7aX0MCs3+ViVUauHq4y0mJKRXXdktE9aeaejMjXlObt",
      "6M0bkg0/R2/eMK5f09f0NRsZJRXJSFtcV9j0Lr4ssErvw+LMN9i0RV0Nn4w8ZATaFtejEXyqm7vVsR2Cr6vzMCuq88WOj4xcNDiE+qIO",
      "uBj2X6EYVmAZwSo1d5d1US2iKoXQ1MixnXClppFqymXOLqbGWHUxsRPh1DQyavb91HTKhB5LR6fji7G0Y38uqNcXU6UnShugPA9cG0sO",
      "VtwRRGPkfKImNpi3570gOt8IIvLwcE9g65Tf7ZiRsr5+XwW8JSOaEbzBKn2AWR+Mt0OYPs+vGwgYyHJwjJGMFj/Pdi1WxDgr+ukwnC3i",
      "3PMDmgUDFj2LQD/0HJ0XfkkZ5qNwVEDuI7MRuAMHMkQmDdrgwWFA0NGA8lQbSZFTjcpTYx1aFQSSbOvY+41cZSRAgtXKTx+svxfXsafT",
      "8VjtGByEanF3szN3l7AVfN3vB3v+EcqtQV9Xsbj+E9qv27Hdvf5bjuuutdtRAGwvqLU2kkX0nCONQaGVxoI2zEOuqchjAAXOK6dy2ivv",
      "3EvrI4DgQT0zAOeLNDnGeVnfHYdgz+TVfrC7Fpu/5n2AsrN9gFqsAjab/mWy2XTM4W4GbcJmG5PNjCsQFvOsvvZS1nqOnaj8X9sHMigG",
      "1ueM5xogZza3OTNGoI8qRh4gz5n1fUQ9jWA541wxEZ3gngoeeHhuIIeSBOVRBJdjB/en/lZto7NGbb6EbVmrzoZauI3Q4LgGZ76Dzqpw",
      "sv0IG68cMlTo0OugXGAyaia5DgyNjCIEKpj0NGrHuWWoHKcUvPHaC2f5D1+Vqv22KIdtgtS1Q21Kt9u08t2sKyEVN/gO2s8t9vVrmC0j",
      "1/sdGCP6pellU/jhiJvlM9Jg6ppqPOzhyz2hjzC5837APTUdZgSbpm7IqOrKsp+h7cr0Qyx+TJuS3aM+9KKirK+X2uiJuTfGed0Wj2Tw",
      "9eAB+5YSbUOzVCcol/bbbFsabjTaxoyM9lnGA8g8B+24FFRGqdHoCLwnHhjmrBHMo5IRPbNUKY9caw88CutAci+/n2WnKvBfkgfeYqwb",
      "nNyi73qFdlx/7Ji82gr1XiydkxpRIDMClDKOAY+RGi0d1TaK6JXUxmmpJIKP3EWvIPIYldEmWs2fOSd+WmrvY0H4tKfL16yMTT07TImp",
      "/o9s2Ls8/oA4yIMhRK44BOaQe2Ndbj13NDfRC20CgFXcgY4sF14CYzk3Uale1SkunMD42xjKfgkqn4ecuHysTfqBY/gcWp0kPFb9a62w",
      "gbOqK4/Zmavr8myZnTeD4FMH5TtoL+o2Henua8SPSJef1CoZGXZJRkQe1pCdPe5UpZXzznbXFvu8lLanWmBSM0pzz6ThAYyh3KD1KINz",
      "1FBnmPLWUSFlELbPqZijZ5LZ38dL+QS8for8vZvArlYlF1fP+av+fdm/1j8uBQjvhcSWGsESZ7j6k6JY35YdfB+uHu73ZMsMbqeIl9i8",
      "g3Zfhczg9rIp6qZId4/abC1LD2d3Ze3/+dDN3EBSdkSz7Lj/Cw=="
    ].join(""),
    "base64"
  )
)

/** `isShared`: deflated with the dictionary. */
export const inflated = (bytes: Uint8Array, isShared: boolean): string =>
  inflateRawSync(bytes, isShared ? { dictionary } : {}).toString("utf8")

/** Neither hex, which begins with `0x`, nor JSON begins so. `z2:`: with the dictionary. */
const alone = "z1:"
/** The number of hashes, the hashes with 32 bytes each, then as in `z2:` the text with a letter for each hash. */
const hashed = "z3:"

/** The prefix and the following bytes, which are in base64 in text columns. */
export const partsOf = (column: Column): { readonly prefix: string; readonly bytes: Buffer } =>
  typeof column === "string"
    ? { prefix: column.slice(0, 3), bytes: Buffer.from(column.slice(3), "base64") }
    : {
        prefix: Buffer.from(column.subarray(0, 3)).toString("latin1"),
        bytes: Buffer.from(column.subarray(3))
      }

/** A bytes column as text, for other databases. */
export const asText = (column: Uint8Array): string => {
  const { bytes, prefix } = partsOf(column)
  return prefix + bytes.toString("base64")
}

const withHashes = (bytes: Buffer): string => {
  const hashAt = (place: number) => bytes.subarray(1 + 32 * place, 33 + 32 * place).toString("hex")
  const rest = inflated(bytes.subarray(1 + 32 * (bytes[0] ?? 0)), true)
  return rest.replaceAll(/0x([g-n])/g, (_, letter) => `0x${hashAt("ghijklmn".indexOf(letter))}`)
}

/** The text of a column: plain, or deflated by an earlier version. */
export const read = (column: Column): string => {
  if (typeof column === "string" && !/^z[123]:/.test(column)) return column
  const { bytes, prefix } = partsOf(column)
  return prefix === hashed ? withHashes(bytes) : inflated(bytes, prefix !== alone)
}
