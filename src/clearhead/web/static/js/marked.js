// @ts-check
/** A matrix in which a cell of each row is marked: the largest. */
import { Matrix } from "clearhead/matrix.js";

export class Marked extends Matrix {
  /** The marked column of each row; below zero for none. @type {number[]} */
  columns = [];

  /** Draws the marks, too. */
  mark() {
    super.mark();
    const context = this.above.getContext("2d");
    // Before the first row is known it has no marks yet: the field is set behind the constructor of what it extends.
    if (!context || !this.columns) return;
    const { size } = this;
    const [radius, style] = [Math.max(1.2, Math.min(4.5, size * 0.16)), getComputedStyle(this.element)];
    context.lineWidth = 1.5;
    context.fillStyle = this.ink;
    context.strokeStyle = style.getPropertyValue("--card");
    this.columns.forEach((column, row) => {
      const [x, y] = [(column + 0.5) * size + this.x, (row + 0.5) * size + this.y];
      if (column < 0 || x < 0 || y < 0 || x > this.width || y > this.height) return;
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      if (size > 8) context.stroke();
      context.fill();
    });
  }
}

/**
 * The marked column of each row of a picture, where a row may stand for several: the largest of that with the highest weight.
 *
 * @param {ArrayLike<number>} largest column of each row, below zero for none
 * @param {ArrayLike<number>} highest weight of each row
 * @param {number} tall how many rows a row of the picture stands for
 * @param {number} wide how many columns
 * @returns {number[]}
 */
export function marksOf(largest, highest, tall, wide) {
  return Array.from({ length: Math.ceil(largest.length / tall) }, (_, row) => {
    let best = row * tall;
    for (let each = best; each < Math.min(largest.length, (row + 1) * tall); each++) if (highest[each] > highest[best]) best = each;
    return Math.floor(largest[best] / wide);
  });
}
