// Package chart draws line charts as SVG text, which is readable on light and dark pages.
package chart
