"""Small trainings that show what the notes say, each a claim with a bar: `python -m proofs`."""
