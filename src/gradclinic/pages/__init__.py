"""Runs as pictures: figures from what a store keeps, the report of one run, the pages of the dashboard.

Figures are plain data in plotly's format; what draws them is the script that the installed plotly
package brings, so nothing here imports plotly, and nothing is fetched from elsewhere.
"""
