export const number = value => {
  const size = Math.abs(value)
  if (size >= 1000) return Math.round(value).toLocaleString("en-US").replaceAll(",", " ")
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3)
}

export const times = ({ median, low, high }) => `${number(median)}x (${number(low)}-${number(high)})`

/** First column to the left, the others to the right. */
export const grid = rows => {
  const widths = rows[0].map((_, column) => Math.max(...rows.map(row => row[column].length)))
  const line = row =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column])))
      .join("  ")
  const [head, ...body] = rows.map(line)
  return [head, "-".repeat(head.length), ...body].map(text => `  ${text}`).join("\n")
}
