/** Which addresses anybody may be sent to. Pure. */

const privateV4: ReadonlyArray<readonly [base: string, bits: number]> = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3]
]

const toNumber = (address: string): number =>
  address.split(".").reduce((number, part) => number * 256 + Number(part), 0)

const isPrivateV4 = (address: string): boolean =>
  privateV4.some(([base, bits]) => {
    const size = 2 ** (32 - bits)
    return Math.floor(toNumber(address) / size) === Math.floor(toNumber(base) / size)
  })

/** The eight groups of an IPv6 address; `undefined` when it is none. */
const groupsOf = (address: string): ReadonlyArray<number> | undefined => {
  const bare = address.replace(/%.*$/, "").replace(/^\[|\]$/g, "")
  const mapped = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(bare)
  const number = mapped === null ? 0 : toNumber(mapped[2] ?? "")
  const text =
    mapped === null
      ? bare
      : `${mapped[1]}${Math.floor(number / 65_536).toString(16)}:${(number % 65_536).toString(16)}`
  const halves = text.split("::")
  const parts = (half: string | undefined) => (half === undefined || half === "" ? [] : half.split(":"))
  const [left, right] = [parts(halves[0]), parts(halves[1])]
  const missing = 8 - left.length - right.length
  if (halves.length > 2 || missing < 0 || (halves.length === 1 && missing !== 0)) return undefined
  const groups = [...left, ...Array.from({ length: missing }, () => "0"), ...right].map(part =>
    Number.parseInt(part, 16)
  )
  return groups.some(Number.isNaN) ? undefined : groups
}

const isPrivateV6 = (address: string): boolean => {
  const groups = groupsOf(address)
  if (groups === undefined) return true
  const [first = 0, second = 0, third = 0] = groups
  const v4 = (high = 0, low = 0): string => [high >> 8, high & 255, low >> 8, low & 255].join(".")
  // Mapped, compatible and translated addresses are those of the IPv4 address in them.
  if (groups.slice(0, 5).every(group => group === 0)) return isPrivateV4(v4(groups[6], groups[7]))
  if (first === 0x64 && second === 0xff9b) return third !== 0 || isPrivateV4(v4(groups[6], groups[7]))
  if (first === 0x2002) return isPrivateV4(v4(second, third))
  // Global unicast, but for documentation, Teredo and what is assigned to protocols.
  if (first < 0x2000 || first > 0x3fff) return true
  return first === 0x2001 && (second < 0x200 || second === 0xdb8)
}

/** Whether an address is anything but a public one. */
export const isPrivate = (address: string): boolean =>
  /^\d+\.\d+\.\d+\.\d+$/.test(address) ? isPrivateV4(address) : isPrivateV6(address)
