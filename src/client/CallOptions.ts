export interface CallOptions {
  readonly signal?: AbortSignal
}
