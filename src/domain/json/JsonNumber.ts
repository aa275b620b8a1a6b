/** The numbers of JSON as they are written. `JSON.parse` rounds what a double does not hold, without a word. */

const plain = /^[1-9][0-9]{0,14}$|^0$/
const shape = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/

/** Longest exponent that is looked at: those beyond mean infinity, or zero. */
const exponentDigits = 8

/** One text for all texts of one number: its significant digits and the power of ten of the last one. */
const normal = (text: string): string | null => {
  const [, sign, units, decimals = "", exponent = "0"] = shape.exec(text) ?? []
  if (sign === undefined || units === undefined || exponent.length > exponentDigits) return null
  const digits = (units + decimals).replace(/^0+/, "")
  let end = digits.length
  while (end > 0 && digits.charCodeAt(end - 1) === 0x30) end--
  if (end === 0) return `${sign}0`
  return `${sign}${digits.slice(0, end)}e${Number(exponent) - decimals.length + digits.length - end}`
}

/**
 * True when the number that `JSON.parse` makes of this text is the one that is written: its shortest decimal text
 * (`String`) is the same number. 50.10 and 1e3 are exact, 9007199254740993, 0.1000000000000000000001 and 1e400 are
 * not, and neither is -0, which no reader tells from 0.
 */
export const isExact = (text: string): boolean => {
  if (plain.test(text)) return true
  const written = normal(text)
  return written !== null && written !== "-0" && written === normal(String(Number(text)))
}
