/** The median; 0 without values. */
export const median = (values: ReadonlyArray<number>): number => quantile(values, 0.5)

export const quantile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

/** Runs contenders in turn, reversed every other round, so that disturbances of the machine affect all of them. */
export const alternate = async <Name extends string, Sample>(
  rounds: number,
  contenders: Readonly<Record<Name, () => Promise<Sample>>>
): Promise<Readonly<Record<Name, ReadonlyArray<Sample>>>> => {
  const names = Object.keys(contenders) as unknown as ReadonlyArray<Name>
  const samples = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Name,
    Array<Sample>
  >
  for (let round = 0; round < rounds; round++)
    for (const name of round % 2 === 0 ? names : [...names].reverse())
      samples[name].push(await contenders[name]())
  return samples
}

/** Three significant digits, with thousands separators. */
export const figure = (value: number): string => {
  if (!Number.isFinite(value)) return "-"
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2
  return Number(value.toFixed(digits)).toLocaleString("en-US")
}

export const ratio = (value: number): string => `${figure(value)} x`
