const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const array = 0x5b
const object = 0x7b

/** Counts the values of JSON text as its bytes arrive: each begins the text, an array, an object, or follows a comma. */
export class ValueCount {
  private count = 1
  private inText = false
  private escaped = false

  /** No string so far has a backslash or a control character. */
  plain = true

  /** Takes the next bytes; how many values there are so far. */
  add(chunk: Uint8Array): number {
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]
      if (this.escaped) this.escaped = false
      else if (this.inText) {
        if (byte === backslash) {
          this.escaped = true
          this.plain = false
        } else if (byte === quote) this.inText = false
        else if (byte !== undefined && byte < 0x20) this.plain = false
      } else if (byte === quote) this.inText = true
      else if (byte === comma || byte === array || byte === object) this.count += 1
    }
    return this.count
  }
}
