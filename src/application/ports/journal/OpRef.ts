/** An element's op, by its request. */
export interface OpRef {
  readonly requestId: string
  readonly index: number
}
